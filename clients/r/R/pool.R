# Pools: sessions made ahead of time.

check_size <- function(size) {
  refuse <- function(message) stop(rpc_condition(list(message = message, code = -32602L, data = list(code = "invalid"))))
  if (!is.numeric(size) || length(size) != 1 || is.na(size) || size < 1) refuse("`size` must be at least 1")
  if (size > 100) refuse("`size` must not exceed 100")
  as.integer(size)
}

pool_public <- list(
  initialize = function(size = 4L, tools = list(), sandbox = TRUE, limits = NULL, verbose = FALSE, reset_between_uses = FALSE, guest = "r",
                        level = NULL, policy = list(), env = list(), audit_log = NULL, connection = NULL,
                        server = NULL, key = NULL) {
    size <- check_size(size)
    check_link(connection, server, key)
    private$owner <- owner <- new.env(parent = emptyenv())
    owner$tools <- check_tools(tools)
    owner$verbose <- isTRUE(verbose)
    private$guest <- guest
    params <- open_params(guest, level, policy, limits, audit_log, owner$tools, env)
    params$size <- size
    # As in securer: the same sessions are handed out again, with what was left in them, unless told otherwise.
    params$reuse <- !isTRUE(reset_between_uses)
    private$state <- state <- new.env(parent = emptyenv())
    state$size <- size
    state$link <- if (is.null(connection)) shared_connection(server, key) else connection
    state$id <- request(state$link, "pool.open", params)$pool
    reg.finalizer(self, dropper(state, "pool"), onexit = TRUE)
    private$say("Pool started (sandbox=true, size=", size, ")")
  },
  evaluate = function(code, context = list(), timeout = NA, acquire_timeout = NULL, on_output = NULL) {
    if (private$is_closed()) state_error("Pool is closed.")
    link <- private$state$link
    p <- execute_params(code, timeout, context, NULL, NULL, TRUE, is.function(on_output), private$guest)
    p$pool <- private$state$id
    p$wait_ms <- if (is.null(acquire_timeout)) 0 else round(acquire_timeout * 1000)
    key <- paste0("request ", link$last + 1L)
    assign(key, private$owner, envir = link$owners)
    on.exit(rm(list = key, envir = link$owners))
    r <- request(link, "pool.execute", p, on_output)
    names(r)[names(r) == "result"] <- "value"
    r
  },
  execute = function(code, timeout = NULL, acquire_timeout = NULL) {
    if (private$is_closed()) state_error("Pool is closed.")
    check_code(code)
    lines <- line_buffer(NULL, NULL)
    start <- proc.time()[["elapsed"]]
    r <- self$evaluate(code, list(), timeout, acquire_timeout, lines$add)
    say_outcome(private$owner$verbose, r, private$guest, timeout, start)
    settle(r, lines$finish(), timeout, private$guest)
  },
  status = function() {
    if (private$is_closed()) return(list(total = 0L, busy = 0L, idle = 0L, dead = 0L))
    request(private$state$link, "pool.status", list(pool = private$state$id))
  },
  size = function() if (private$is_closed()) 0L else private$state$size,
  available = function() self$status()$idle,
  close = function() {
    state <- private$state
    id <- state$id
    state$id <- NULL
    if (!is.null(id) && is_connected(state$link)) {
      tryCatch(request(state$link, "pool.close", list(pool = id)), cordon_error = function(e) NULL)
    }
    if (!is.null(id)) private$say("Pool closed")
    invisible(self)
  },
  format = function(...) {
    if (private$is_closed()) return("<SecureSessionPool> [closed]")
    s <- self$status()
    sprintf("<SecureSessionPool> size=%d idle=%d busy=%d", private$state$size, s$idle, s$busy)
  },
  print = function(...) {
    cat(self$format(), "\n", sep = "")
    invisible(self)
  }
)

pool_private <- list(
  owner = NULL,
  state = NULL,
  guest = NULL,
  is_closed = function() is.null(private$state$id),
  say = function(...) say_if(private$owner$verbose, ...)
)

SecureSessionPool <- plain_class("SecureSessionPool", pool_public, pool_private) # R6's if it is there: .onLoad()

format.SecureSessionPool <- function(x, ...) x$format()
print.SecureSessionPool <- function(x, ...) x$print()

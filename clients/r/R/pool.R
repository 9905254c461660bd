# Pools: sessions made ahead of time.

new_pool <- function(size = 4L, tools = list(), sandbox = TRUE, limits = NULL, verbose = FALSE, reset_between_uses = FALSE, guest = "r",
                     level = NULL, policy = list(), env = list(), audit_log = NULL, connection = NULL) {
  if (!is.numeric(size) || length(size) != 1 || is.na(size) || size < 1) {
    stop(rpc_condition(list(message = "`size` must be at least 1", code = -32602L, data = list(code = "invalid"))))
  }
  if (size > 100) stop(rpc_condition(list(message = "`size` must not exceed 100", code = -32602L, data = list(code = "invalid"))))
  size <- as.integer(size)
  self <- new.env(parent = emptyenv())
  owner <- new.env(parent = emptyenv())
  owner$tools <- check_tools(tools)
  owner$verbose <- isTRUE(verbose)
  say <- function(...) if (verbose) message("[cordon] ", ...)
  c <- if (is.null(connection)) shared_connection() else connection
  params <- open_params(guest, level, policy, limits, audit_log, owner$tools, env)
  params$size <- size
  # As in securer: the same sessions are handed out again, with what was left in them, unless told otherwise.
  params$reuse <- !isTRUE(reset_between_uses)
  state <- new.env(parent = emptyenv())
  state$link <- c
  state$id <- request(c, "pool.open", params)$pool
  say("pool started")
  closed <- function() is.null(state$id)

  self$evaluate <- function(code, context = list(), timeout = NA, acquire_timeout = NULL, on_output = NULL) {
    if (closed()) state_error("Pool is closed.")
    p <- execute_params(code, timeout, context, NULL, NULL, TRUE, is.function(on_output))
    p$pool <- state$id
    p$wait_ms <- if (is.null(acquire_timeout)) 0 else round(acquire_timeout * 1000)
    key <- paste0("request ", c$last + 1L)
    assign(key, owner, envir = c$owners)
    on.exit(rm(list = key, envir = c$owners))
    r <- request(c, "pool.execute", p, on_output)
    names(r)[names(r) == "result"] <- "value"
    r
  }
  self$execute <- function(code, timeout = NULL, acquire_timeout = NULL) {
    if (closed()) state_error("Pool is closed.")
    check_code(code)
    lines <- line_buffer(NULL, NULL)
    say("execute")
    r <- self$evaluate(code, list(), timeout, acquire_timeout, lines$add)
    say("execution ", if (isTRUE(r$success)) "complete" else "failed")
    settle(r, lines$finish(), timeout)
  }
  self$status <- function() {
    if (closed()) return(list(total = 0L, busy = 0L, idle = 0L, dead = 0L))
    request(c, "pool.status", list(pool = state$id))
  }
  self$size <- function() if (closed()) 0L else size
  self$available <- function() self$status()$idle
  self$close <- function() {
    id <- state$id
    state$id <- NULL
    if (!is.null(id) && is_connected(c)) tryCatch(request(c, "pool.close", list(pool = id)), cordon_error = function(e) NULL)
    if (!is.null(id)) say("pool closed")
    invisible(self)
  }
  self$format <- function() {
    if (closed()) return("<SecureSessionPool> [closed]")
    s <- self$status()
    sprintf("<SecureSessionPool> size=%d idle=%d busy=%d", size, s$idle, s$busy)
  }
  self$print <- function() {
    cat(self$format(), "\n", sep = "")
    invisible(self)
  }
  reg.finalizer(self, dropper(state, "pool"), onexit = TRUE)
  class(self) <- "SecureSessionPool"
  self
}

SecureSessionPool <- list(new = new_pool, classname = "SecureSessionPool")

format.SecureSessionPool <- function(x, ...) x$format()
print.SecureSessionPool <- function(x, ...) x$print()

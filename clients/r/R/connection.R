# The connection to `cordon rpc`. R has one thread: whoever waits for an answer carries out the tool calls that come meanwhile.

hub <- new.env(parent = emptyenv())
hub$connections <- list()
SESSIONS_MAX <- 64L
EARLY_MAX <- 1000L

find_program <- function() {
  path <- Sys.getenv("CORDON", Sys.which("cordon"))
  if (!nzchar(path)) {
    stop("the program 'cordon' was not found: install it, or name it in the environment variable CORDON", call. = FALSE)
  }
  path
}

cordon_connect <- function(program = NULL, args = character()) {
  self <- new.env(parent = emptyenv())
  self$peer <- .Call(C_peer_start, c(if (is.null(program)) find_program() else program, "rpc", args))
  self$last <- 0L
  self$sessions <- 0L
  self$answers <- list()
  self$owners <- new.env(parent = emptyenv())
  self$early <- list() # events of a session whose id is not known yet
  self$is_alive <- TRUE
  class(self) <- "cordon_connection"
  self
}

is_connected <- function(c) c$is_alive && .Call(C_peer_pid, c$peer) > 0L

shared_connection <- function() {
  hub$connections <- Filter(is_connected, hub$connections)
  for (c in hub$connections) if (c$sessions < SESSIONS_MAX) return(c)
  c <- cordon_connect()
  hub$connections <- c(hub$connections, list(c))
  c
}

close_connection <- function(c) {
  if (c$is_alive) .Call(C_peer_stop, c$peer)
  c$is_alive <- FALSE
}

rpc_condition <- function(error) {
  kind <- if (is.null(error$data$code)) "" else error$data$code
  structure(class = c(paste0("cordon_", kind), "cordon_error", "error", "condition"),
            list(message = error$message, call = NULL, code = error$code, kind = kind))
}

state_error <- function(message) stop(rpc_condition(list(message = message, code = -32600L, data = list(code = "state"))))

lost <- function(c) {
  c$is_alive <- FALSE
  stop(structure(class = c("cordon_connection_lost", "cordon_error", "error", "condition"),
                 list(message = "the server is gone", call = NULL, kind = "lost")))
}

send <- function(c, pieces) if (!.Call(C_peer_send, c$peer, pieces)) lost(c)

# on_output(stream, data): for the output of this request.
request <- function(c, method, params = empty_object(), on_output = NULL) {
  if (!is_connected(c)) lost(c)
  id <- c$last <- c$last + 1L
  send(c, paste0('{"jsonrpc":"2.0","id":', id, ',"method":"', method, '","params":', to_json(params), "}"))
  done <- FALSE
  on.exit(if (!done && c$is_alive) {
    send(c, paste0('{"jsonrpc":"2.0","method":"cancel","params":{"request_id":', id, "}}"))
    drain(c, id)
  })
  answer <- wait_answer(c, id, on_output)
  done <- TRUE
  if (!is.null(answer$error)) stop(rpc_condition(answer$error))
  answer$result
}

wait_answer <- function(c, id, on_output) {
  key <- as.character(id)
  repeat {
    if (!is.null(c$answers[[key]])) {
      answer <- c$answers[[key]]
      c$answers[[key]] <- NULL
      return(answer)
    }
    m <- .Call(C_peer_receive, c$peer, 100L)
    if (is.null(m)) next # and R looks at interrupts
    if (isFALSE(m)) lost(c)
    if (is.null(m$method)) {
      # What the server could not read has no id: R sends one after the other, so it was this one.
      if (identical(m$id, id) || is.null(m$id)) return(m)
      c$answers[[as.character(m$id)]] <- m
    } else {
      serve(c, m, id, on_output)
    }
  }
}

# After an interrupt: the answer to the request that was cancelled must not meet the next one.
drain <- function(c, id) tryCatch(wait_answer(c, id, NULL), error = function(e) NULL)

serve <- function(c, m, id, on_output) {
  p <- m$params
  if (m$method == "output") {
    if (identical(p$request_id, id) && !is.null(on_output)) on_output(p$stream, p$data)
    return(invisible())
  }
  key <- if (is.null(p$session)) p$session_id else p$session
  owner <- get0(key, envir = c$owners, inherits = FALSE)
  if (is.null(owner)) owner <- get0(paste0("request ", p$request_id), envir = c$owners, inherits = FALSE)
  if (m$method == "tool.call") {
    answer_tool(c, m, owner)
  } else if (m$method == "approval") {
    answer_approval(c, p, owner)
  } else if (m$method == "audit" && is.null(owner) && length(c$early) < EARLY_MAX) {
    c$early[[length(c$early) + 1L]] <- p
  } else if (m$method == "audit" && is.function(owner$on_audit)) {
    owner$on_audit(p)
  }
}

# From now on this is the session's owner; it learns what happened before its id was known.
adopt_session <- function(c, id, owner) {
  assign(id, owner, envir = c$owners)
  mine <- vapply(c$early, function(p) identical(p$session_id, id), NA)
  early <- c$early[mine]
  c$early <- c$early[!mine]
  if (is.function(owner$on_audit)) for (p in early) owner$on_audit(p)
}

answer_tool <- function(c, m, owner) {
  say <- function(...) if (isTRUE(owner$verbose)) message("[cordon] ", ...)
  say("tool call: ", m$params$tool)
  reply <- tryCatch({
    fn <- owner$tools[[m$params$tool]]$fn
    if (is.null(fn)) stop("no such tool here")
    value <- do.call(fn, lapply(m$params$args, identity))
    list(jsonrpc = "2.0", id = m$id, result = list(value = value_json(value)))
  }, error = function(e) {
    list(jsonrpc = "2.0", id = m$id, error = list(code = 1, message = conditionMessage(e)))
  })
  say("tool result: ", m$params$tool, if (is.null(reply$error)) "" else " (error)")
  send(c, to_json(reply))
}

answer_approval <- function(c, p, owner) {
  verdict <- FALSE
  if (is.function(owner$on_approval)) {
    verdict <- tryCatch(owner$on_approval(list(id = p$id, session = p$session, kind = p$kind, what = p$what, detail = p$detail)),
                        error = function(e) conditionMessage(e))
  }
  # Only TRUE allows; a text says why not, list(value =) answers in the tool's place, everything else is a no.
  has_value <- is.list(verdict) && "value" %in% names(verdict)
  reply <- list(session = p$session, id = p$id, allow = isTRUE(verdict) || has_value)
  if (is_string(verdict) && nzchar(verdict)) reply$reason <- verdict
  if (has_value) reply$value <- value_json(verdict$value)
  c$last <- c$last + 1L
  send(c, paste0('{"jsonrpc":"2.0","method":"approval.resolve","params":', to_json(reply), "}"))
}

.onUnload <- function(libpath) {
  for (c in hub$connections) close_connection(c)
  library.dynam.unload("cordon", libpath)
}

# The connection to `cordon rpc`, which may connect to a `cordon serve`. R has one thread: whoever waits for an answer carries out the tool calls that come meanwhile.

hub <- new.env(parent = emptyenv())
hub$connections <- list()
SESSIONS_MAX <- 64L
EARLY_MAX <- 1000L
CONNECT_FAILURES <- c("unreachable", "key_refused", "busy")

find_program <- function() {
  path <- Sys.getenv("CORDON", Sys.which("cordon"))
  if (!nzchar(path)) {
    stop("the program 'cordon' was not found: install it, or name it in the environment variable CORDON", call. = FALSE)
  }
  path
}

# What was given, or the environment variables CORDON_SERVER and CORDON_KEY; NULL: the local program.
find_server <- function(server = NULL, key = NULL) {
  # An empty text is often a variable that was not set: the code must not run here instead.
  if (identical(server, "")) stop("`server` is empty: name one, or leave it out for the local program", call. = FALSE)
  given <- function(value, name) {
    if (is.null(value)) value <- Sys.getenv(name)
    if (!is_string(value)) stop("`", tolower(sub("CORDON_", "", name)), "` must be a text", call. = FALSE)
    if (nzchar(value)) value
  }
  server <- given(server, "CORDON_SERVER")
  if (is.null(server) && !is.null(key)) stop("`key` needs `server`, or the environment variable CORDON_SERVER", call. = FALSE)
  if (!is.null(server)) list(server = server, key = given(key, "CORDON_KEY"))
}

# The program connects to the server. It gets the key in its environment: arguments can be seen by other users.
start_bridge <- function(program, at, ca_file) {
  old <- Sys.getenv("CORDON_KEY", NA)
  on.exit(if (is.na(old)) Sys.unsetenv("CORDON_KEY") else Sys.setenv(CORDON_KEY = old))
  if (is.null(at$key)) Sys.unsetenv("CORDON_KEY") else Sys.setenv(CORDON_KEY = at$key)
  .Call(C_peer_start, c(program, "rpc", "--server", at$server, if (!is.null(ca_file)) c("--ca", normalizePath(ca_file, mustWork = TRUE))))
}

cordon_connect <- function(program = NULL, args = character(), server = NULL, key = NULL, ca_file = NULL) {
  if (length(args) > 0L && (!is.null(server) || !is.null(key))) stop("`server` and `key` exclude `args`", call. = FALSE)
  at <- if (length(args) == 0L) find_server(server, key)
  if (is.null(program)) program <- find_program()
  self <- new.env(parent = emptyenv())
  self$peer <- if (is.null(at)) .Call(C_peer_start, c(program, "rpc", args)) else start_bridge(program, at, ca_file)
  self$at <- at
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

# A server beside a connection would be ignored.
check_link <- function(connection, server, key) {
  if (!is.null(connection) && (!is.null(server) || !is.null(key))) {
    stop("`connection` excludes `server` and `key`: name the server in cordon_connect()", call. = FALSE)
  }
}

shared_connection <- function(server = NULL, key = NULL) {
  at <- find_server(server, key)
  hub$connections <- Filter(is_connected, hub$connections)
  for (c in hub$connections) if (c$sessions < SESSIONS_MAX && identical(c$at, at)) return(c)
  c <- cordon_connect(server = server, key = key)
  hub$connections <- c(hub$connections, list(c))
  c
}

close_connection <- function(c) {
  if (c$is_alive) .Call(C_peer_stop, c$peer)
  c$is_alive <- FALSE
}

rpc_condition <- function(error) {
  kind <- if (is.null(error$data$code)) "" else error$data$code
  failed <- if (kind %in% CONNECT_FAILURES) "cordon_connect_failed" # there is no connection to a server
  structure(class = c(paste0("cordon_", kind), failed, "cordon_error", "error", "condition"),
            list(message = error$message, call = NULL, code = error$code, kind = kind))
}

state_error <- function(message) stop(rpc_condition(list(message = message, code = -32600L, data = list(code = "state"))))

lost <- function(c) {
  c$is_alive <- FALSE
  stop(structure(class = c("cordon_connection_lost", "cordon_error", "error", "condition"),
                 list(message = "the server is gone", call = NULL, kind = "lost")))
}

send <- function(c, pieces, attached = FALSE) if (!.Call(C_peer_send, c$peer, pieces, attached)) lost(c)

# on_output(stream, data): for the output of this request.
request <- function(c, method, params = empty_object(), on_output = NULL) {
  steps <- if (!is.null(c$at)) BY_VALUE[[method]]
  if (is.null(steps)) ask(c, method, params, on_output)$result else steps(c, method, params)
}

# path: a file whose bytes follow the line. The whole answer.
ask <- function(c, method, params, on_output = NULL, path = NULL) {
  if (!is_connected(c)) lost(c)
  id <- c$last <- c$last + 1L
  size <- if (is.null(path)) attr(params$buffer, "bytes") else file.size(path) # binary columns follow the line
  attachment <- if (is.null(size)) "" else paste0(',"attachment":', number_json(size))
  line <- paste0('{"jsonrpc":"2.0","id":', id, attachment, ',"method":"', method, '","params":', to_json(params), "}")
  # What has ended before it was asked may have said why, so a line that cannot be sent is waited for, too.
  if (is.null(path)) .Call(C_peer_send, c$peer, line, !is.null(size)) else if (!.Call(C_peer_send_file, c$peer, line, path, size)) lost(c)
  done <- FALSE
  on.exit(if (!done && c$is_alive) {
    send(c, paste0('{"jsonrpc":"2.0","method":"cancel","params":{"request_id":', id, "}}"))
    drain(c, id)
  })
  answer <- wait_answer(c, id, on_output)
  done <- TRUE
  if (!is.null(answer$error$data$code) && answer$error$data$code %in% CONNECT_FAILURES) c$is_alive <- FALSE
  if (!is.null(answer$error)) stop(rpc_condition(answer$error))
  answer
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

# What names a file of this machine goes by value to a server, which has other files.
without <- function(params, names) params[setdiff(names(params), names)]
BY_VALUE <- list(
  files.upload = function(c, method, params) {
    file <- file(params$from, "rb")
    on.exit(close(file))
    seek(file, params$offset)
    data <- readBin(file, "raw", min(params$length, PIECE))
    p <- without(params, c("from", "offset", "length"))
    p$data <- .Call(C_bytes_encode, data)
    ask(c, if (params$offset > 0) "files.append" else "files.write", p)
    size <- file.size(params$from)
    list(length = length(data), eof = params$offset + length(data) >= size, size = size)
  },
  files.download = function(c, method, params) {
    p <- without(params, "to")
    p$length <- min(p$length, PIECE)
    r <- ask(c, "files.read", p)$result
    data <- .Call(C_bytes_decode, r$data)
    file <- file(params$to, "r+b")
    on.exit(close(file))
    seek(file, params$offset, rw = "write")
    writeBin(data, file)
    list(length = length(data), eof = r$eof, size = params$offset + length(data))
  },
  files.put_tar = function(c, method, params) send_file(c, method, params),
  files.import = function(c, method, params) send_file(c, method, params),
  files.get_tar = function(c, method, params) receive_file(c, method, params),
  files.export = function(c, method, params) receive_file(c, method, params)
)

send_file <- function(c, method, params) {
  if (is.null(params$from)) return(ask(c, method, params)$result)
  ask(c, method, c(without(params, "from"), list(attached = TRUE)), path = params$from)$result
}

receive_file <- function(c, method, params) {
  if (is.null(params$to)) return(ask(c, method, params)$result)
  if (file.exists(params$to)) stop(rpc_condition(list(message = paste0("create '", params$to, "': File exists"), code = -32000L, data = list(code = "exists"))))
  answer <- ask(c, method, c(without(params, "to"), list(attach = TRUE)))
  bytes <- if (is.null(answer$bytes)) raw() else answer$bytes
  writeBin(bytes, params$to)
  list(length = length(bytes), report = answer$result$report)
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

# A value on one line, for a message.
shown <- function(value) tryCatch({
  text <- gsub("[[:space:]]+", " ", paste(deparse(value, nlines = 2L), collapse = " "))
  if (nchar(text) > 60L) paste0(substr(text, 1L, 57L), "...") else text
}, error = function(e) paste0("<", class(value)[1L], ">"))

answer_tool <- function(c, m, owner) {
  name <- m$params$tool
  args <- as.list(m$params$args)
  start <- proc.time()[["elapsed"]]
  if (isTRUE(owner$verbose)) {
    say_if(TRUE, "Tool call: ", name, "(", paste0(names(args), "=", vapply(args, shown, ""), recycle0 = TRUE, collapse = ", "), ")")
  }
  value <- NULL
  reply <- tryCatch({
    fn <- owner$tools[[name]]$fn
    if (is.null(fn)) stop("no such tool here")
    value <- do.call(fn, args, quote = TRUE) # language is data
    list(jsonrpc = "2.0", id = m$id, result = list(value = value_json(value)))
  }, error = function(e) {
    list(jsonrpc = "2.0", id = m$id, error = list(code = 1, message = conditionMessage(e)))
  })
  if (isTRUE(owner$verbose)) {
    outcome <- if (is.null(reply$error)) shown(value) else paste("error:", reply$error$message)
    say_if(TRUE, "Tool result: ", name, " -> ", outcome, " (", seconds_since(start), ")")
  }
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

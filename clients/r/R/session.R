# Sessions: securer's names and semantics, for any guest.

LIMITS <- c("cpu", "memory", "fsize", "nproc", "nofile", "stack")

default_limits <- function() list(cpu = 60, memory = 536870912, fsize = 52428800, nproc = 50, nofile = 256)

check_limits <- function(limits) {
  if (is.null(names(limits))) stop("`limits` must be a named list", call. = FALSE)
  unknown <- setdiff(names(limits), LIMITS)
  if (length(unknown) > 0) {
    stop("Unknown limit name(s): ", paste(unknown, collapse = ", "), ". Valid names: ", paste(LIMITS, collapse = ", "), call. = FALSE)
  }
  for (n in names(limits)) {
    v <- limits[[n]]
    if (!is.numeric(v) || length(v) != 1 || is.na(v) || v <= 0) {
      stop("Limit '", n, "' must be a single positive number, got: ", paste(format(v), collapse = ", "), call. = FALSE)
    }
  }
  lapply(limits, function(v) max(1, floor(v)))
}

check_audit_path <- function(path) {
  if (is.null(path)) return(NULL)
  if (!is.character(path) || length(path) != 1 || is.na(path) || !nzchar(path)) {
    stop("audit_log path must be a non-empty character string", call. = FALSE)
  }
  if (grepl("^/dev/", path)) stop("audit_log path must not point to a device file", call. = FALSE)
  link <- Sys.readlink(path)
  if (!is.na(link) && nzchar(link)) stop("audit_log path must not be a symlink", call. = FALSE)
  dir.create(dirname(path), recursive = TRUE, showWarnings = FALSE)
  file.path(normalizePath(dirname(path)), basename(path))
}

open_params <- function(guest, level, policy, limits, audit_log, tools, env, set = NULL) {
  policy <- as.list(policy)
  if (!is.null(limits) && length(limits) > 0) policy$limits <- check_limits(limits)
  policy$audit <- check_audit_path(audit_log)
  p <- list(guest = guest)
  p$level <- level
  if (length(policy) > 0) p$policy <- policy
  if (length(tools) > 0) p$tools <- tool_params(tools)
  if (length(env) > 0) p$env <- as.list(env)
  if (length(set) > 0) p$set <- as.list(set)
  p
}

seconds_text <- function(s) paste(format(s), if (s == 1) "second" else "seconds")

execute_params <- function(code, timeout, context, stdin, max_tool_calls, validate, stream) {
  p <- list(code = code)
  if (!is.null(timeout) && !identical(timeout, NA) && (!is.numeric(timeout) || length(timeout) != 1 || is.na(timeout) || timeout <= 0)) {
    stop("`timeout` must be a positive number of seconds, or NULL", call. = FALSE)
  }
  if (is.null(timeout) || is.infinite(timeout)) p["timeout_ms"] <- list(NULL)
  else if (!is.na(timeout)) p$timeout_ms <- max(1, round(timeout * 1000))
  if (length(context) > 0) p$context <- context_json(context)
  if (is.character(stdin)) p$stdin <- paste(stdin, collapse = "\n")
  else if (is.raw(stdin)) p$stdin_base64 <- .Call(C_bytes_encode, stdin)
  if (!is.null(max_tool_calls)) p$tool_calls <- max_tool_calls
  if (!validate) p$validate <- FALSE
  if (stream) p$stream <- TRUE
  p
}

execution_error <- function(r, message = r$error) {
  structure(class = c(paste0("cordon_", r$error_kind), "cordon_execution_error", "cordon_error", "error", "condition"),
            list(message = message, call = NULL, kind = r$error_kind, result = r))
}

# What $execute of a session and of a pool let through, after all other checks.
check_code <- function(code, max_code_length = 100000L) {
  if (!is_string(code)) stop("`code` must be a single character string", call. = FALSE)
  if (!is.null(max_code_length) && nchar(code) > max_code_length) {
    stop("Code too long (", nchar(code), " chars, max ", max_code_length, ").", call. = FALSE)
  }
}

# The outcome as an R user wants it: the value, or an error.
settle <- function(r, lines, timeout, sanitize = identity, validate = TRUE) {
  if (!isTRUE(r$success)) {
    text <- r$error
    if (identical(r$error_kind, "timeout") && !is.null(timeout) && !is.na(timeout)) {
      text <- paste("Execution timed out after", seconds_text(timeout))
    } else if (identical(r$error_kind, "syntax") && validate) {
      text <- paste0("Code has a syntax error and was not executed:\n", r$error)
    }
    stop(execution_error(r, sanitize(text)))
  }
  value <- r$value
  if (length(lines) > 0 && !is.null(value)) attr(value, "output") <- lines
  value
}

# Output as lines: whole ones as they come, the rest at the end.
line_buffer <- function(handler, max_lines) {
  rest <- c(stdout = "", stderr = "")
  kept <- character()
  emit <- function(lines) {
    for (line in lines) {
      if (is.function(handler)) tryCatch(handler(line), error = function(e) NULL)
      if (is.null(max_lines) || length(kept) < max_lines) kept[[length(kept) + 1L]] <<- line
    }
  }
  list(
    add = function(stream, data) {
      text <- paste0(rest[[stream]], data)
      parts <- strsplit(text, "\n", fixed = TRUE)[[1]]
      if (!endsWith(text, "\n") && length(parts) > 0) {
        rest[[stream]] <<- parts[[length(parts)]]
        parts <- parts[-length(parts)]
      } else {
        rest[[stream]] <<- ""
      }
      emit(parts)
    },
    finish = function() {
      emit(rest[nzchar(rest)])
      unname(kept)
    }
  )
}

absolute <- function(path) ifelse(startsWith(path, "/"), path, paste0("/home/user/", path))
PIECE <- 4194304

to_raw <- function(data) if (is.raw(data)) data else charToRaw(enc2utf8(paste(data, collapse = "\n")))

make_files <- function(call) {
  put <- function(method, path, data) call(paste0("files.", method), list(path = absolute(path), data = .Call(C_bytes_encode, data)))
  add <- function(path, data) {
    for (i in seq(1, max(1, length(data)), by = PIECE)) {
      put("append", path, data[seq_len(min(PIECE, max(0, length(data) - i + 1))) + i - 1])
    }
  }
  files <- list(
    read = function(path) {
      parts <- list()
      offset <- 0
      repeat {
        r <- call("files.read", list(path = absolute(path), offset = offset, length = PIECE))
        parts[[length(parts) + 1L]] <- .Call(C_bytes_decode, r$data)
        offset <- offset + r$length
        if (r$eof) return(do.call(c, parts))
      }
    },
    write = function(path, data) {
      data <- to_raw(data)
      if (length(data) <= PIECE) {
        put("write", path, data)
      } else {
        part <- paste0(absolute(path), ".part-", basename(tempfile("")))
        done <- FALSE
        on.exit(if (!done) try(call("files.remove", list(path = part)), silent = TRUE))
        put("write", part, data[seq_len(PIECE)])
        add(part, data[-seq_len(PIECE)])
        call("files.move", list(from = part, to = absolute(path)))
        done <- TRUE
      }
      invisible()
    },
    append = function(path, data) invisible(add(path, to_raw(data))),
    list = function(path = "/home/user") {
      e <- call("files.list", list(path = absolute(path)))$entries
      data.frame(name = vapply(e, function(x) x$name, ""), type = vapply(e, function(x) x$type, ""),
                 size = vapply(e, function(x) as.numeric(x$size), 0))
    },
    stat = function(path) call("files.stat", list(path = absolute(path))),
    mkdir = function(path, parents = FALSE) invisible(call("files.mkdir", list(path = absolute(path), parents = parents))),
    move = function(from, to) invisible(call("files.move", list(from = absolute(from), to = absolute(to)))),
    remove = function(path, recursive = FALSE) invisible(call("files.remove", list(path = absolute(path), recursive = recursive)))
  )
  files$read_text <- function(path) {
    text <- rawToChar(files$read(path))
    Encoding(text) <- "UTF-8"
    text
  }
  files
}

# What happens to a session or pool that nobody closed. It must not see its owner, which would keep it alive; and as it may run in
# the middle of a request it only sends and never waits.
dropper <- function(state, kind) {
  force(state)
  force(kind)
  function(e) drop_owned(state, state$link, kind)
}

drop_owned <- function(state, c, kind) {
  if (is.null(state$id) || !is_connected(c)) return(invisible())
  try(.Call(C_peer_send, c$peer, paste0('{"jsonrpc":"2.0","method":"', kind, '.close","params":{"', kind, '":"', state$id, '"}}')),
      silent = TRUE)
  if (kind == "session") c$sessions <- c$sessions - 1L
}

new_session <- function(tools = list(), sandbox = FALSE, limits = NULL, verbose = FALSE, sandbox_strict = FALSE, audit_log = NULL,
                        max_executions = NULL, pre_execute_hook = NULL, sanitize_errors = FALSE, guest = "r", level = NULL,
                        policy = list(), env = list(), on_approval = NULL, on_audit = NULL, connection = NULL, adopt = NULL) {
  if (!is.null(max_executions) && (!is.numeric(max_executions) || length(max_executions) != 1 || is.na(max_executions) || max_executions <= 0)) {
    stop("`max_executions` must be a positive number", call. = FALSE)
  }
  if (!is.null(pre_execute_hook) && !is.function(pre_execute_hook)) stop("`pre_execute_hook` must be a function", call. = FALSE)
  self <- new.env(parent = emptyenv())
  owner <- new.env(parent = emptyenv())
  owner$tools <- check_tools(tools)
  owner$on_approval <- on_approval
  owner$on_audit <- on_audit
  say <- function(...) if (verbose) message("[cordon] ", ...)
  owner$verbose <- isTRUE(verbose) # no function of this frame: the connection keeps owners, and a session must be collectable
  state <- new.env(parent = emptyenv())
  state$executions <- 0
  state$busy <- FALSE
  state$result <- NULL
  state$params <- adopt$params
  if (is.null(adopt)) {
    state$params <- open_params(guest, level, policy, limits, audit_log, owner$tools, env)
    if (is.function(on_audit)) state$params$audit <- TRUE
  }
  runs <- function() !is.null(state$id) && is_connected(state$link)
  start <- function(id = NULL) {
    state$link <- if (is.null(connection)) shared_connection() else connection
    state$id <- if (is.null(id)) request(state$link, "session.open", state$params)$session else id
    state$link$sessions <- state$link$sessions + 1L
    adopt_session(state$link, state$id, owner)
  }
  forget <- function(id) {
    state$link$sessions <- state$link$sessions - 1L
    if (exists(id, envir = state$link$owners, inherits = FALSE)) rm(list = id, envir = state$link$owners)
  }
  start(adopt$id)
  say("session started")

  call <- function(method, params = list(), on_output = NULL) {
    if (is.null(state$id)) state_error("Session is not running.")
    request(state$link, method, c(list(session = state$id), params), on_output)
  }

  # The whole result, whatever the code did.
  self$evaluate <- function(code, context = list(), timeout = NA, stdin = NULL, validate = TRUE, on_output = NULL, max_tool_calls = NULL) {
    params <- execute_params(code, timeout, context, stdin, max_tool_calls, validate, is.function(on_output))
    state$busy <- TRUE
    on.exit(state$busy <- FALSE)
    r <- call("session.execute", params, on_output)
    names(r)[names(r) == "result"] <- "value"
    state$result <- r
    structure(r, class = "cordon_result")
  }
  check_before <- function(code, max_code_length, output_handler) {
    if (!runs()) state_error("Session is not running.")
    if (state$busy) {
      state_error("<SecureSession> does not support concurrent execute() calls; wait for the current execution to complete.")
    }
    if (!is.null(max_executions) && state$executions >= max_executions) {
      stop("Maximum executions (", max_executions, ") reached for this session.", call. = FALSE)
    }
    if (is.function(pre_execute_hook)) {
      verdict <- tryCatch(pre_execute_hook(code), error = function(e) {
        stop("pre_execute_hook error: ", conditionMessage(e), call. = FALSE)
      })
      if (identical(verdict, FALSE)) stop("Execution blocked by pre_execute_hook.", call. = FALSE)
    }
    check_code(code, max_code_length)
    if (!is.null(output_handler) && !is.function(output_handler)) stop("`output_handler` must be a function", call. = FALSE)
  }
  self$execute <- function(code, timeout = 30, validate = TRUE, output_handler = NULL, max_tool_calls = NULL, max_code_length = 100000L,
                           max_output_lines = NULL, context = list()) {
    check_before(code, max_code_length, output_handler)
    lines <- line_buffer(output_handler, max_output_lines)
    say("execute")
    r <- self$evaluate(code, context, timeout, NULL, validate, lines$add, max_tool_calls)
    if (!identical(r$error_kind, "syntax") || !validate) state$executions <- state$executions + 1
    state$output <- lines$finish()
    say("execution ", if (isTRUE(r$success)) "complete" else "failed")
    settle(r, state$output, timeout, if (sanitize_errors) function(m) cordon_sanitize(m, connection = state$link) else identity,
           validate)
  }
  # Of the last execution: what it printed (a NULL value cannot carry it), and all that is known.
  self$last_output <- function() state$output
  self$last_result <- function() state$result
  # Also of a session that was closed, or whose server is gone: that one begins anew, without its files.
  self$restart <- function() {
    if (state$busy) state_error("Cannot restart while an execution is in progress.")
    if (runs()) {
      call("session.restart")
    } else {
      if (!is.null(state$id)) forget(state$id)
      state$id <- NULL
      start()
    }
    say("session restarted")
    invisible(self)
  }
  self$is_alive <- function() {
    runs() && tryCatch(identical(call("session.describe")$state, "running"), error = function(e) FALSE)
  }
  self$describe <- function() call("session.describe")
  self$tools <- function() lapply(owner$tools, function(t) list(name = t$name, args = if (isTRUE(t$is_legacy)) NULL else t$args))
  self$setenv <- function(name, value) invisible(call("session.setenv", list(name = name, value = value)))
  self$files <- make_files(call)
  self$snapshot <- function(name = NULL) call("snapshot.create", if (is.null(name)) list() else list(name = name))$name
  self$restore <- function(name) invisible(call("snapshot.restore", list(name = name)))
  self$fork <- function() {
    # What guards the session guards its forks.
    new_session(tools = unname(owner$tools), guest = guest, verbose = verbose, sanitize_errors = sanitize_errors, on_approval = on_approval,
                on_audit = on_audit, max_executions = max_executions, pre_execute_hook = pre_execute_hook, connection = state$link,
                adopt = list(id = call("session.fork")$session, params = state$params))
  }
  self$export <- function() {
    tryCatch(.Call(C_bytes_decode, call("files.export")$data), cordon_limit = function(e) {
      file <- tempfile("cordon-") # more than fits into an answer
      on.exit(unlink(file))
      call("files.export", list(to = file))
      readBin(file, "raw", file.size(file))
    })
  }
  self$import <- function(blob) {
    if (length(blob) <= PIECE) return(invisible(call("files.import", list(data = .Call(C_bytes_encode, blob)))$report))
    file <- tempfile("cordon-") # more than fits into a request
    on.exit(unlink(file))
    writeBin(blob, file)
    invisible(call("files.import", list(from = file))$report)
  }
  self$close <- function() {
    id <- state$id
    state$id <- NULL
    if (!is.null(id)) {
      if (is_connected(state$link)) {
        answer <- tryCatch(request(state$link, "session.close", list(session = id)), cordon_error = function(e) NULL)
        # The workspace was not saved, or the audit log lacks lines.
        for (lost in answer$warnings) warning(lost, call. = FALSE)
      }
      forget(id)
      say("session closed")
    }
    invisible(self)
  }
  self$format <- function() {
    alive <- self$is_alive()
    pid <- if (alive) self$describe()$pid else NA
    paste0("<SecureSession> [", if (alive) "running" else "stopped", "] pid=", pid, " sandbox=enabled tools=", length(owner$tools))
  }
  self$print <- function() {
    cat("<SecureSession>\n* Status: ", if (self$is_alive()) "running" else "stopped", "\n* Tool count: ", length(owner$tools),
        "\n* Sandbox: enabled\n", sep = "")
    invisible(self)
  }
  reg.finalizer(self, dropper(state, "session"), onexit = TRUE)
  class(self) <- "SecureSession"
  self
}

SecureSession <- list(new = new_session, classname = "SecureSession")

format.SecureSession <- function(x, ...) x$format()
print.SecureSession <- function(x, ...) x$print()

`%or%` <- function(a, b) if (is.null(a)) b else a

# One line that tells how it ended, then what there is of value, output and refusals, each cut.
format.cordon_result <- function(x, ...) {
  cut <- function(text, most = 60L) {
    text <- gsub("[[:space:]]+", " ", text)
    if (nchar(text) > most) paste0(substr(text, 1L, most), "...") else text
  }
  shown <- function(v) tryCatch({
    text <- paste(trimws(if (is.list(v)) deparse(v, nlines = 5L) else format(v[seq_len(min(length(v), 10L))])), collapse = " ")
    paste0(class(v)[1L], if (length(v) != 1L) paste0("[", length(v), "]"), " ", text)
  }, error = function(e) class(v)[1L])
  bytes <- function(name) if (nzchar(x[[name]] %or% "")) {
    paste0("  ", name, ": ", nchar(x[[name]], "bytes"), " bytes: ", cut(x[[name]]))
  }
  counts <- lengths(unclass(x)[c("outputs", "denials", "warnings")])
  names(counts) <- c("outputs", "denials", "warnings")
  counts <- counts[counts > 0L]
  c(sprintf("<cordon result: %s, %.0f ms>", if (isTRUE(x$success)) "success" else paste0(x$error_kind %or% "failed", ", exit code ", x$exit_code),
            x$execution_time_ms %or% 0),
    if (!is.null(x$error)) paste0("  error: ", cut(x$error)),
    if (!is.null(x$value)) paste0("  value: ", cut(shown(x$value))),
    bytes("stdout"), bytes("stderr"),
    if (length(counts)) paste0("  ", paste(counts, names(counts), collapse = ", ")))
}

print.cordon_result <- function(x, ...) {
  cat(format(x), sep = "\n")
  invisible(x)
}

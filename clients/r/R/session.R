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

# Guests that take large values as binary columns (docs/values.md).
COLUMN_GUESTS <- if (.Platform$endian == "little") c("python", "r", "node") else character()

execute_params <- function(code, timeout, context, stdin, max_tool_calls, validate, stream, guest = NULL) {
  p <- list(code = code)
  if (!is.null(timeout) && !identical(timeout, NA) && (!is.numeric(timeout) || length(timeout) != 1 || is.na(timeout) || timeout <= 0)) {
    stop("`timeout` must be a positive number of seconds, or NULL", call. = FALSE)
  }
  if (is.null(timeout) || is.infinite(timeout)) p["timeout_ms"] <- list(NULL)
  else if (!is.na(timeout)) p$timeout_ms <- max(1, round(timeout * 1000))
  takes_columns <- !is.null(guest) && guest %in% COLUMN_GUESTS
  if (takes_columns) p$buffers <- TRUE
  if (length(context) > 0) {
    if (takes_columns) .Call(C_columns_start)
    p$context <- context_json(context)
    table <- if (takes_columns) .Call(C_columns_header)
    if (!is.null(table)) p$buffer <- structure(json_text(table[[1]]), bytes = table[[2]])
  }
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

# What went wrong, as R says it: without the class of the condition, which is part of the text in other languages.
error_text <- function(r, guest) {
  name <- paste0(r$exception$name, ": ")
  if (identical(guest, "r") && !is.null(r$exception) && startsWith(r$error, name)) substring(r$error, nchar(name) + 1L) else r$error
}

# The outcome as an R user wants it: the value, or an error.
settle <- function(r, lines, timeout, guest, sanitize = identity, validate = TRUE) {
  if (!isTRUE(r$success)) {
    text <- error_text(r, guest)
    if (identical(r$error_kind, "timeout") && !is.null(timeout) && !is.na(timeout)) {
      text <- paste("Execution timed out after", seconds_text(timeout))
    } else if (identical(r$error_kind, "syntax") && validate) {
      # R's own message shows the place.
      if (identical(guest, "r") && is_string(r$exception$traceback)) text <- r$exception$traceback
      text <- paste0("Code has a syntax error and was not executed:\n", text)
    }
    stop(execution_error(r, sanitize(text)))
  }
  value <- r$value
  if (length(lines) > 0 && !is.null(value) && !is.symbol(value)) attr(value, "output") <- lines # a symbol has no attributes
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
BLOCK <- 8388608 # of a file that the server opens itself

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
  # Each piece is answered before the next; memory stays the same, whatever the file's size.
  pieces <- function(method, progress, params) {
    done <- 0
    repeat {
      r <- call(method, c(params, list(offset = done, length = BLOCK)))
      done <- done + r$length
      if (!is.null(progress)) progress(done, max(done, r$size))
      if (r$eof) return(invisible())
    }
  }
  files$upload <- function(local, path, progress = NULL) {
    part <- paste0(absolute(path), ".part-", basename(tempfile("")))
    done <- FALSE
    on.exit(if (!done) try(call("files.remove", list(path = part)), silent = TRUE))
    pieces("files.upload", progress, list(path = part, from = normalizePath(local, mustWork = TRUE)))
    call("files.move", list(from = part, to = absolute(path)))
    done <- TRUE
    invisible()
  }
  files$download <- function(path, local, progress = NULL) {
    folder <- normalizePath(dirname(local), mustWork = TRUE)
    target <- file.path(folder, basename(local))
    part <- paste0(target, ".part-", basename(tempfile("")))
    if (!file.create(part, showWarnings = FALSE)) stop("cannot create '", part, "'")
    on.exit(unlink(part))
    pieces("files.download", progress, list(path = absolute(path), to = part))
    if (!file.rename(part, target)) stop("cannot replace '", target, "'")
    invisible()
  }
  files$put_tar <- function(path, tar) invisible(call("files.put_tar", list(path = absolute(path), from = normalizePath(tar, mustWork = TRUE)))$report)
  files$get_tar <- function(path, tar) {
    to <- file.path(normalizePath(dirname(tar), mustWork = TRUE), basename(tar))
    invisible(call("files.get_tar", list(path = absolute(path), to = to))$report)
  }
  # $changes(timeout) waits for changes, for at most so many seconds: a data frame of path, change and type.
  files$watch <- function(path = "/home/user", recursive = TRUE) {
    watch <- call("files.watch", list(path = absolute(path), recursive = recursive))$watch
    list(changes = function(timeout = 0) {
      found <- call("files.changes", list(watch = watch, wait_ms = max(0, round(timeout * 1000))))$changes
      as.data.frame(lapply(c(path = "path", change = "change", type = "type"), function(n) vapply(found, function(x) x[[n]], "")))
    }, close = function() invisible(call("files.unwatch", list(watch = watch))))
  }
  files$read_text <- function(path) {
    text <- rawToChar(files$read(path))
    Encoding(text) <- "UTF-8"
    text
  }
  files
}

# Names are exact: `$result`, as docs/result.md calls the value, must not find `result_text`.
`$.cordon_result` <- function(x, name) .subset2(x, if (name == "result") "value" else name)

as_result <- function(r) {
  names(r)[names(r) == "result"] <- "value"
  # The empty symbol as a variable is an argument that is missing.
  if (is.symbol(r[["value"]]) && !nzchar(as.character(r[["value"]]))) r["value"] <- list(NULL)
  structure(r, class = "cordon_result")
}

# A command in the background.
make_process <- function(call, id) {
  force(id)
  here <- function(method, params = list()) call(paste0("process.", method), c(list(process = id), params))
  output <- function(stream) {
    said <- tryCatch(here("output", list(stream = stream))$data, cordon_not_found = function(e) if (is.null(result)) stop(e))
    if (is.null(said)) return(result[[stream]]) # the server has forgotten it
    text <- rawToChar(.Call(C_bytes_decode, said))
    Encoding(text) <- "UTF-8"
    text
  }
  result <- NULL # the server keeps only the last ones
  # Its result, as often as it is asked for. timeout: in seconds; if it still runs then, an error of class cordon_timeout.
  wait <- function(timeout = NULL) {
    if (is.null(result)) {
      result <<- as_result(here("wait", if (is.null(timeout)) list() else list(wait_ms = round(timeout * 1000))))
    }
    result
  }
  p <- list(
    id = id,
    wait = wait,
    # Nothing happens if it has ended. The exit code is then 137.
    kill = function() if (is.null(result)) invisible(here("kill")),
    # timeout: in seconds; if it has not read everything then, an error of class cordon_timeout.
    write = function(data, eof = FALSE, timeout = NULL) {
      data <- to_raw(data)
      end <- if (is.null(timeout)) Inf else proc.time()[["elapsed"]] + timeout
      repeat {
        piece <- data[seq_len(min(32768, length(data)))]
        n <- here("write", list(data = .Call(C_bytes_encode, piece), eof = eof && length(piece) == length(data)))$written
        data <- data[seq_len(length(data) - n) + n]
        if (length(data) == 0) return(invisible())
        if (n == 0 && proc.time()[["elapsed"]] >= end) {
          stop(structure(class = c("cordon_timeout", "cordon_error", "error", "condition"), list(call = NULL, message = sprintf(
            "process %d does not read its stdin: %d bytes were not written", id, length(data)))))
        }
        if (n == 0) Sys.sleep(0.01)
      }
    },
    close_stdin = function() invisible(here("write", list(eof = TRUE))),
    resize = function(rows, columns) invisible(here("resize", list(rows = as.integer(rows), columns = as.integer(columns)))),
    signal = function(name) invisible(here("signal", list(signal = name))),
    stdout = function() output("stdout"),
    stderr = function() output("stderr"),
    # NULL: it still runs.
    exit_code = function() tryCatch(wait(0)$exit_code, cordon_timeout = function(e) NULL),
    is_running = function() {
      is.null(result) && any(vapply(call("process.list")$processes, function(x) x$process == id && identical(x$state, "running"), TRUE))
    }
  )
  structure(p, class = "cordon_process")
}

make_commands <- function(call) list(
  # A command line for bash in a session with `languages`, beside everything else.
  run = function(command, background = FALSE, cwd = NULL, env = NULL, stdin = NULL, timeout = NA, on_output = NULL, pty = NULL) {
    p <- execute_params("", timeout, list(), stdin, NULL, TRUE, is.function(on_output) && !background)
    p$code <- NULL
    p$command <- command
    p$cwd <- cwd
    if (length(env) > 0) p$env <- as.list(env)
    # On a terminal: TRUE, or c(rows, columns).
    if (is.numeric(pty)) p$pty <- list(rows = as.integer(pty[[1]]), columns = as.integer(pty[[2]]))
    else if (isTRUE(pty)) p$pty <- TRUE
    if (background) {
      p$background <- TRUE
      return(make_process(call, call("session.command", p)$process))
    }
    as_result(call("session.command", p, on_output))
  },
  list = function() call("process.list")$processes,
  # An error of class cordon_not_found if there is none.
  connect = function(id) {
    call("process.output", list(process = id, offset = 2^53))
    make_process(call, id)
  }
)

# What happens to a session or pool that nobody closed. It must not see its owner, which would keep it alive; and as it may run in
# the middle of a request it only sends and never waits.
dropper <- function(state, kind) {
  force(state)
  force(kind)
  function(e) drop_owned(state, state$link, kind)
}

drop_owned <- function(state, c, kind) {
  if (is.null(state$id) || !is_connected(c)) return(invisible())
  try(.Call(C_peer_send, c$peer, paste0('{"jsonrpc":"2.0","method":"', kind, '.close","params":{"', kind, '":"', state$id, '"}}'), FALSE),
      silent = TRUE)
  if (kind == "session") c$sessions <- c$sessions - 1L
}

# What a session's constructor refuses before anything is started.
check_session <- function(max_executions, pre_execute_hook) {
  if (!is.null(max_executions) && (!is.numeric(max_executions) || length(max_executions) != 1 || is.na(max_executions) || max_executions <= 0)) {
    stop("`max_executions` must be a positive number", call. = FALSE)
  }
  if (!is.null(pre_execute_hook) && !is.function(pre_execute_hook)) stop("`pre_execute_hook` must be a function", call. = FALSE)
}

# What the argument verbose = TRUE shows. The beginning is securer's, for scripts that look for it.
say_if <- function(verbose, ...) if (isTRUE(verbose)) message("[securer] ", ...)
seconds_since <- function(start) sprintf("%.2fs", proc.time()[["elapsed"]] - start)
say_outcome <- function(verbose, r, guest, timeout, start) {
  say_if(verbose, if (isTRUE(r$success)) "Execution complete"
                  else if (identical(r$error_kind, "timeout")) paste0("Execution timed out", if (is.numeric(timeout)) paste0(" after ", format(timeout), "s"))
                  else paste("Execution error:", error_text(r, guest)), " (", seconds_since(start), ")")
}

# `private$state` and `private$owner` must not see the session: the finalizer and the connection keep them, and a session that nobody
# else has must be collectable.
session_public <- list(
  files = NULL,
  commands = NULL,
  initialize = function(tools = list(), sandbox = FALSE, limits = NULL, verbose = FALSE, sandbox_strict = FALSE, audit_log = NULL,
                        max_executions = NULL, pre_execute_hook = NULL, sanitize_errors = FALSE, guest = "r", level = NULL,
                        policy = list(), env = list(), on_approval = NULL, on_audit = NULL, connection = NULL, adopt = NULL,
                        languages = NULL, packages = NULL, server = NULL, key = NULL) {
    check_session(max_executions, pre_execute_hook)
    private$settings <- list(guest = guest, verbose = isTRUE(verbose), sanitize_errors = isTRUE(sanitize_errors), on_approval = on_approval,
                             on_audit = on_audit, max_executions = max_executions, pre_execute_hook = pre_execute_hook)
    check_link(connection, server, key)
    private$connection <- connection
    private$at <- list(server = server, key = key)
    private$owner <- owner <- new.env(parent = emptyenv())
    owner$tools <- check_tools(tools)
    owner$on_approval <- on_approval
    owner$on_audit <- on_audit
    owner$verbose <- isTRUE(verbose)
    private$state <- state <- new.env(parent = emptyenv())
    state$executions <- 0
    state$busy <- FALSE
    state$result <- NULL
    state$contexts <- list()
    state$params <- adopt$params
    if (is.null(adopt)) {
      state$params <- open_params(guest, level, policy, limits, audit_log, owner$tools, env)
      if (is.function(on_audit)) state$params$audit <- TRUE
      if (length(languages) > 0) state$params$languages <- as.list(languages)
      if (length(packages) > 0) state$params$packages <- as.list(packages)
    }
    self$files <- make_files(private$call)
    self$commands <- make_commands(private$call)
    lockBinding("files", self)
    lockBinding("commands", self)
    reg.finalizer(self, dropper(state, "session"), onexit = TRUE)
    private$start(adopt$id)
  },

  # The whole result, whatever the code did.
  evaluate = function(code, context = list(), timeout = NA, stdin = NULL, validate = TRUE, on_output = NULL, max_tool_calls = NULL) {
    state <- private$state
    params <- execute_params(code, timeout, context, stdin, max_tool_calls, validate, is.function(on_output), private$settings$guest)
    state$busy <- TRUE
    on.exit(state$busy <- FALSE)
    r <- as_result(private$call("session.execute", params, on_output))
    state$result <- unclass(r)
    r
  },
  execute = function(code, timeout = 30, validate = TRUE, output_handler = NULL, max_tool_calls = NULL, max_code_length = 100000L,
                     max_output_lines = NULL, context = list()) {
    state <- private$state
    settings <- private$settings
    private$check_before(code, max_code_length, output_handler)
    lines <- line_buffer(output_handler, max_output_lines)
    start <- if (settings$verbose) proc.time()[["elapsed"]]
    r <- self$evaluate(code, context, timeout, NULL, validate, lines$add, max_tool_calls)
    is_refused <- identical(r$error_kind, "syntax") && validate # and did not run
    if (!is_refused) state$executions <- state$executions + 1
    state$output <- lines$finish()
    if (!is_refused) say_outcome(settings$verbose, r, settings$guest, timeout, start)
    sanitize <- if (settings$sanitize_errors) function(m) cordon_sanitize(m, connection = state$link) else identity
    settle(r, state$output, timeout, settings$guest, sanitize, validate)
  },
  # Of the last execution: what it printed (a NULL value cannot carry it), and all that is known.
  last_output = function() private$state$output,
  last_result = function() private$state$result,
  # Packages in the workspace, as far as the policy names them. language: "r", "python" or "node"; NULL: the session's own.
  install = function(names, language = NULL) {
    if (private$state$busy) state_error("Cannot install packages while an execution is in progress.")
    params <- list(names = as.list(names))
    if (!is.null(language)) params$language <- language
    invisible(private$call("session.install", params))
  },
  # Also of a session that was closed, or whose server is gone: that one begins anew, without its files.
  restart = function() {
    state <- private$state
    if (state$busy) state_error("Cannot restart while an execution is in progress.")
    private$say("Restarting session")
    if (private$runs()) {
      private$call("session.restart")
      private$say_started()
    } else {
      if (!is.null(state$id)) private$forget(state$id)
      state$id <- NULL
      private$start()
    }
    invisible(self)
  },
  is_alive = function() {
    private$runs() && tryCatch(identical(private$call("session.describe")$state, "running"), error = function(e) FALSE)
  },
  describe = function() private$call("session.describe"),
  tools = function() {
    tools <- private$owner$tools
    if (length(tools) == 0) return(list())
    lapply(tools, function(t) list(name = t$name, args = if (isTRUE(t$is_legacy)) NULL else t$args))
  },
  setenv = function(name, value) invisible(private$call("session.setenv", list(name = name, value = value))),
  snapshot = function(name = NULL) private$call("snapshot.create", if (is.null(name)) list() else list(name = name))$name,
  restore = function(name) invisible(private$call("snapshot.restore", list(name = name))),
  fork = function() private$companion(private$call("session.fork")$session), # what guards the session guards its forks
  # Further interpreters in a session with `languages`: same files, processes and limits, each with a state of its own. They are kept
  # here, so that they end with the session.
  context = function(language = NULL, name = "default") {
    state <- private$state
    if (is.null(language)) language <- private$settings$guest
    id <- private$call("session.context", list(language = language, context = name))$session
    if (identical(id, state$id)) return(self)
    if (is.null(state$contexts[[id]])) state$contexts[[id]] <- private$companion(id, list(guest = language, max_executions = NULL))
    state$contexts[[id]]
  },
  # The whole result of code in a context.
  run = function(code, language = NULL, context = "default", variables = list(), timeout = NA, on_output = NULL) {
    self$context(language, context)$evaluate(code, variables, timeout, on_output = on_output)
  },
  # Lets the host connect to a port that the code listens on: the path of a Unix socket, or with host_port "127.0.0.1:PORT".
  expose = function(port, host_port = NULL, path = NULL) {
    p <- list(port = port)
    p$host_port <- host_port
    p$path <- path
    private$call("session.expose", p)$address
  },
  unexpose = function(port) invisible(private$call("session.unexpose", list(port = port))),
  exposed = function() private$call("session.exposed")$ports,
  export = function() {
    tryCatch(.Call(C_bytes_decode, private$call("files.export")$data), cordon_limit = function(e) {
      file <- tempfile("cordon-") # more than fits into an answer
      on.exit(unlink(file))
      private$call("files.export", list(to = file))
      readBin(file, "raw", file.size(file))
    })
  },
  import = function(blob) {
    if (length(blob) <= PIECE) return(invisible(private$call("files.import", list(data = .Call(C_bytes_encode, blob)))$report))
    file <- tempfile("cordon-") # more than fits into a request
    on.exit(unlink(file))
    writeBin(blob, file)
    invisible(private$call("files.import", list(from = file))$report)
  },
  close = function() {
    state <- private$state
    for (context in state$contexts) context$close()
    state$contexts <- list()
    id <- state$id
    state$id <- NULL
    if (!is.null(id)) {
      if (is_connected(state$link)) {
        answer <- tryCatch(request(state$link, "session.close", list(session = id)), cordon_error = function(e) NULL)
        # The workspace was not saved, or the audit log lacks lines.
        for (lost in answer$warnings) warning(lost, call. = FALSE)
      }
      private$forget(id)
      private$say("Session closed")
    }
    invisible(self)
  },
  format = function(...) {
    alive <- self$is_alive()
    pid <- if (alive) self$describe()$pid else NA
    paste0("<", class(self)[1], "> [", if (alive) "running" else "stopped", "] pid=", pid, " sandbox=enabled tools=",
           length(private$owner$tools))
  },
  print = function(...) {
    cat("<", class(self)[1], ">\n* Status: ", if (self$is_alive()) "running" else "stopped", "\n* Tool count: ",
        length(private$owner$tools), "\n* Sandbox: enabled\n", sep = "")
    invisible(self)
  }
)

session_private <- list(
  settings = NULL,
  connection = NULL,
  at = NULL,
  owner = NULL,
  state = NULL,
  say = function(...) say_if(private$settings$verbose, ...),
  say_started = function() {
    if (private$settings$verbose) private$say("Session started (sandbox=true, pid=", self$describe()$pid, ")")
  },
  runs = function() !is.null(private$state$id) && is_connected(private$state$link),
  start = function(id = NULL) {
    state <- private$state
    state$link <- if (is.null(private$connection)) shared_connection(private$at$server, private$at$key) else private$connection
    state$id <- if (is.null(id)) request(state$link, "session.open", state$params)$session else id
    state$link$sessions <- state$link$sessions + 1L
    adopt_session(state$link, state$id, private$owner)
    private$say_started()
  },
  forget = function(id) {
    link <- private$state$link
    link$sessions <- link$sessions - 1L
    if (exists(id, envir = link$owners, inherits = FALSE)) rm(list = id, envir = link$owners)
  },
  call = function(method, params = list(), on_output = NULL) {
    if (is.null(private$state$id)) state_error("Session is not running.")
    request(private$state$link, method, c(list(session = private$state$id), params), on_output)
  },
  # A session that the server has made of this one.
  companion = function(id, changed = list()) {
    settings <- private$settings
    settings[names(changed)] <- changed
    do.call(SecureSession$new, c(settings, list(tools = unname(private$owner$tools), connection = private$state$link,
                                                adopt = list(id = id, params = private$state$params))))
  },
  check_before = function(code, max_code_length, output_handler) {
    state <- private$state
    settings <- private$settings
    if (!private$runs()) state_error("Session is not running.")
    if (state$busy) {
      state_error("<SecureSession> does not support concurrent execute() calls; wait for the current execution to complete.")
    }
    if (!is.null(settings$max_executions) && state$executions >= settings$max_executions) {
      stop("Maximum executions (", settings$max_executions, ") reached for this session.", call. = FALSE)
    }
    if (is.function(settings$pre_execute_hook)) {
      verdict <- tryCatch(settings$pre_execute_hook(code), error = function(e) {
        stop("pre_execute_hook error: ", conditionMessage(e), call. = FALSE)
      })
      if (identical(verdict, FALSE)) stop("Execution blocked by pre_execute_hook.", call. = FALSE)
    }
    check_code(code, max_code_length)
    if (!is.null(output_handler) && !is.function(output_handler)) stop("`output_handler` must be a function or NULL", call. = FALSE)
  }
)

SecureSession <- plain_class("SecureSession", session_public, session_private) # R6's if it is there: .onLoad()

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

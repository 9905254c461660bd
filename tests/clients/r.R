# The R client: the table, and what it has of its own. TAP. R_LIBS has the package.
library(cordon)
here <- dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)))
decode <- function(text) .Call(cordon:::C_value_decode, text)
ALL <- as.raw(0:255)

TOOLS <- list(
  add = securer_tool("add", "", function(a, b) a + b, list(a = "numeric", b = "numeric")),
  echo = securer_tool("echo", "", function(v) v, list(v = NULL)),
  fail = securer_tool("fail", "", function() stop("tool failed")),
  pi = securer_tool("pi", "", function() 3.141592653589793),
  nothing = securer_tool("nothing", "", function() NULL))

content <- function(step) {
  if (!is.null(step$bytes)) ALL
  else if (!is.null(step[["repeat"]])) charToRaw(strrep(step[["repeat"]][[1]], step[["repeat"]][[2]]))
  else charToRaw(enc2utf8(step$text))
}

# Tuples and vectors are lists to the table; numbers are numbers.
plain <- function(v) {
  if (is.list(v)) lapply(v, plain)
  else if (length(v) > 1) lapply(unname(as.list(v)), plain)
  else if (is.integer(v)) as.numeric(v)
  else v
}
same <- function(a, b) identical(plain(a), plain(b))

check_result <- function(r, step, streamed) {
  got <- list(success = r$success, value = r$value, error = r$error, error_kind = r$error_kind, stdout = r$stdout, stderr = r$stderr,
              exit_code = r$exit_code, restarted = r$restarted, tool_calls = r$tool_calls, truncated_stdout = r$truncated$stdout,
              streamed_stdout = streamed$stdout, streamed_stderr = streamed$stderr, assurance_wall = r$assurance$wall)
  for (key in names(step$expect)) {
    want <- step$expect[[key]]
    if (key == "error_has") {
      if (!grepl(want, r$error, fixed = TRUE)) stop("'", want, "' is not in '", r$error, "'")
    } else if (!same(got[[key]], want)) {
      stop(key, " is ", deparse(got[[key]])[1], ", want ", deparse(want)[1])
    }
  }
}

do_execute <- function(on, step) {
  streamed <- new.env()
  streamed$stdout <- streamed$stderr <- ""
  watch <- if (isTRUE(step$stream)) function(stream, data) assign(stream, paste0(get(stream, streamed), data), streamed)
  timeout <- if (is.null(step$timeout_ms)) NA else step$timeout_ms / 1000
  context <- if (is.null(step$context)) list() else step$context
  args <- list(step$code, context, timeout, on_output = watch)
  if (!is.null(step$tool_calls)) args$max_tool_calls <- step$tool_calls
  check_result(do.call(on$evaluate, args), step, streamed)
}

do_step <- function(on, step, state) {
  switch(step$do,
    execute = do_execute(on, step),
    write = on$files$write(step$path, content(step)),
    append = on$files$append(step$path, content(step)),
    read = { data <- on$files$read(step$path); stopifnot(identical(data, content(step))) },
    stat = { i <- on$files$stat(step$path); stopifnot(i$type == step$type, i$size == step$size) },
    list = stopifnot(identical(sort(on$files$list(step$path)$name), unlist(step$names))),
    mkdir = on$files$mkdir(step$path),
    move = on$files$move(step$from, step$to),
    remove = on$files$remove(step$path, isTRUE(step$recursive)),
    snapshot = on$snapshot(step$as),
    restore = on$restore(step$name),
    fork = assign(step$as, on$fork(), state),
    export = assign("blob", on$export(), state),
    import = on$import(get("blob", state)),
    restart = on$restart(),
    setenv = on$setenv(step$name, step$value),
    close = on$close(),
    stop("unknown operation ", step$do))
}

must_fail <- function(want, action) {
  e <- tryCatch({ action(); NULL }, cordon_error = identity)
  if (is.null(e)) stop("it did not fail")
  if (!isTRUE(want) && !identical(e$kind, want)) stop(e$kind, ", want ", want, ": ", conditionMessage(e))
}

run_case <- function(case) {
  tools <- unname(TOOLS[unlist(case$tools)])
  policy <- if (is.null(case$policy)) list() else lapply(case$policy, function(x) if (is.list(x)) I(unlist(x)) else x)
  env <- if (is.null(case$env)) list() else case$env
  open <- function() {
    if (!is.null(case$pool)) SecureSessionPool$new(size = case$pool, tools = tools, reset_between_uses = TRUE, guest = case$guest, policy = policy, env = env)
    else SecureSession$new(tools = tools, guest = case$guest, policy = policy, env = env)
  }
  if (!is.null(case$open_fails)) return(must_fail(case$open_fails, open))
  session <- open()
  on.exit(session$close())
  state <- new.env()
  for (step in case$steps) {
    on <- if (is.null(step$on)) session else get(step$on, state)
    if (is.null(step$fails)) do_step(on, step, state) else must_fail(step$fails, function() do_step(on, step, state))
  }
}

fails_with <- function(text, expr) {
  m <- tryCatch({ force(expr); NULL }, error = conditionMessage)
  if (is.null(m)) stop("it did not fail")
  if (!grepl(text, m, fixed = TRUE)) stop("'", text, "' is not in '", m, "'")
}

tests <- list(
  "values are exact" = function() with_secure_session(function(s) {
    values <- list(TRUE, NA, 7L, NA_integer_, 0.1, NaN, -Inf, NA_real_, "\u00e9", NA_character_, c(1, NA, 3), c(a = 1L, b = 2L), character(),
      as.Date("2024-02-29"), factor(c("x", "y", NA)), list(1, "a", NULL), list(k = list(1, 2)), matrix(c(1.5, 2, 3, 4), 2), as.raw(0:3), 1+2i,
      data.frame(a = c(1, NA), b = c("x", NA), c = c(TRUE, FALSE)), NULL)
    for (v in values) {
      got <- s$execute("v", context = list(v = v))
      if (!identical(got, v)) stop(deparse(v)[1], " came back as ", deparse(got)[1])
    }
  }),
  "execute: output, errors, state" = function() with_secure_session(function(s) {
    v <- s$execute("cat('hi\\n'); message('there'); 42")
    stopifnot(v == 42, setequal(attr(v, "output"), c("hi", "there")))
    stopifnot(is.null(s$execute("cat('hi\\n'); NULL")), identical(s$last_output(), "hi"))
    fails_with("user error", s$execute("stop('user error')"))
    fails_with("Code has a syntax error and was not executed:", s$execute("if (TRUE {"))
    fails_with("Execution timed out after 1 second", s$execute("while (TRUE) {}", timeout = 1))
    stopifnot(s$execute("100 + 1") == 101)
    seen <- character()
    s$execute("cat('l1\\nl2\\n')", output_handler = function(line) { seen <<- c(seen, line); stop("ignored") })
    stopifnot(identical(seen, c("l1", "l2")))
    v <- s$execute("for (i in 1:100) cat(i, '\\n'); 1", max_output_lines = 3)
    stopifnot(length(attr(v, "output")) == 3)
    fails_with("Code too long (5 chars, max 3).", s$execute("1 + 1", max_code_length = 3))
    stopifnot(s$execute("1 + 1", max_code_length = 5) == 2)
  }),
  "limits of a session" = function() {
    s <- SecureSession$new(max_executions = 2)
    fails_with("syntax", s$execute("1 +"))
    s$execute("1"); s$execute("1")
    fails_with("Maximum executions (2) reached for this session.", s$execute("1"))
    s$close(); s$close()
    fails_with("Session is not running.", s$execute("1"))
    stopifnot(!s$is_alive(), grepl("stopped", format(s)), grepl("pid=NA", format(s)))
    fails_with("Unknown limit name(s): bogus. Valid names: cpu, memory, fsize, nproc, nofile, stack", SecureSession$new(limits = list(bogus = 10)))
    for (bad in list(-1, 0, "ten", c(10, 20))) fails_with("must be a single positive number", SecureSession$new(limits = list(cpu = bad)))
    stopifnot(identical(default_limits(), list(cpu = 60, memory = 536870912, fsize = 52428800, nproc = 50, nofile = 256)))
  },
  "hook" = function() {
    s <- SecureSession$new(pre_execute_hook = function(code) !grepl("system", code))
    stopifnot(s$execute("1 + 1") == 2)
    fails_with("Execution blocked by pre_execute_hook.", s$execute("system('id')"))
    s$close()
  },
  "tools" = function() {
    s <- SecureSession$new(tools = unname(TOOLS[c("add", "fail")]))
    stopifnot(s$execute("add(2, 3)") == 5, grepl("tools=2", format(s)), identical(names(s$tools()), c("add", "fail")))
    fails_with("tool failed", s$execute("fail()"))
    fails_with("Tool 'add': argument 'a' must be numeric, got character", s$execute("add('hello', 3)"))
    s$restart()
    stopifnot(s$execute("add(1, 1)") == 2)
    s$close()
    for (bad in c('x; system("id")', "my tool", "1tool", "tool$name", "")) fails_with("valid R identifier", securer_tool(bad, "", identity))
    fails_with("Duplicate tool names: \"add\"", SecureSession$new(tools = list(TOOLS$add, TOOLS$add)))
  },
  "one shots close" = function() {
    stopifnot(execute_r("1 + 1") == 2)
    kept <- NULL
    fails_with("body", with_secure_session(function(s) { kept <<- s; stop("body") }))
    stopifnot(!kept$is_alive())
  },
  "pool" = function() {
    p <- SecureSessionPool$new(size = 2)
    stopifnot(p$execute("1 + 1") == 2, p$size() == 2)
    fails_with("division", p$execute("stop('division')"))
    stopifnot(p$execute("7", acquire_timeout = 5) == 7)
    p$close()
    # State stays between uses, as in securer, unless a reset is asked for.
    kept <- SecureSessionPool$new(size = 1)
    kept$execute("x <- 5")
    stopifnot(kept$execute("x + 1") == 6)
    kept$close()
    clean <- SecureSessionPool$new(size = 1, reset_between_uses = TRUE)
    clean$execute("x <- 5")
    fails_with("not found", clean$execute("x", acquire_timeout = 10))
    clean$close()
    fails_with("Pool is closed.", p$execute("1"))
    stopifnot(identical(format(p), "<SecureSessionPool> [closed]"), p$status()$total == 0)
    fails_with("at least 1", SecureSessionPool$new(size = 0))
    fails_with("must not exceed 100", SecureSessionPool$new(size = 101))
  },
  "audit" = function() {
    path <- tempfile(fileext = ".jsonl")
    execute_r("1", audit_log = path)
    lines <- readLines(path)
    stopifnot(any(grepl("session_start", lines)), any(grepl("execute_complete", lines)), any(grepl("session_close", lines)))
    fails_with("must be a non-empty character string", SecureSession$new(audit_log = ""))
    fails_with("must not point to a device file", SecureSession$new(audit_log = "/dev/null"))
    link <- tempfile(); file.symlink(path, link)
    fails_with("must not be a symlink", SecureSession$new(audit_log = link))
  },
  "validate_code" = function() {
    stopifnot(validate_code("")$valid, !validate_code("if (TRUE {")$valid, length(validate_code("mean(c(1,2,3))")$warnings) == 0)
    w <- validate_code("x <- 1; system('id'); y <- .Call('z'); do.call(f, list())")$warnings
    stopifnot(length(w) == 3, any(grepl("`.Call()`", w, fixed = TRUE)))
    stopifnot(!validate_code(c("a", "b"))$valid)
    s <- SecureSession$new()
    on.exit(s$close())
    s$execute("eval(1)")
    stopifnot(grepl("`eval()`", unlist(s$last_result()$warnings), fixed = TRUE))
    s$execute("eval(1)", validate = FALSE)
    stopifnot(length(s$last_result()$warnings) == 0)
  },
  "verbose" = function() { # LOG-01
    add <- securer_tool("add", "Adds.", function(a, b) a + b, args = list(a = "numeric", b = "numeric"))
    said <- function(verbose) {
      lines <- character()
      withCallingHandlers({
        s <- SecureSession$new(tools = list(add), verbose = verbose)
        s$execute("add(2, 3)")
        s$close()
      }, message = function(m) {
        lines <<- c(lines, conditionMessage(m))
        invokeRestart("muffleMessage")
      })
      sub("\n$", "", lines)
    }
    stopifnot(identical(said(TRUE), paste("[cordon]", c("session started", "execute", "tool call: add", "tool result: add",
      "execution complete", "session closed"))), length(said(FALSE)) == 0)
  },
  "error texts" = function() {
    stopifnot(grepl("[path]", sanitize_error_message("cannot open file '/Users/john/d/s.csv': No such file"), fixed = TRUE),
              identical(sanitize_error_message(7), "Unknown error"), nchar(sanitize_error_message(strrep("x", 1200), 100)) <= 100)
  },
  "approval" = function() {
    pay <- securer_tool("pay", "", function(amount) paste("paid", amount), list(amount = "numeric"))
    pay$approval <- TRUE
    n <- 0
    s <- SecureSession$new(tools = list(pay), on_approval = function(a) { n <<- n + 1; if (n == 1) TRUE else if (n == 2) list(value = "free") else "too much" })
    stopifnot(s$execute("pay(5)") == "paid 5", s$execute("pay(5)") == "free")
    fails_with("too much", s$execute("pay(5)"))
    s$close()
  },
  "what a model sees" = function() with_secure_session(function(s) {
    run <- cordon:::run_for_model
    stopifnot(run(s, "6 * 7", 30)$value == "42", run(s, "NULL", 30)$value == "NULL", grepl("oops", run(s, "stop('oops')", 30)$error))
    stopifnot(grepl("rows total", run(s, "data.frame(x = 1:100)", 30)$value))
    s$close()
    stopifnot(grepl("no longer alive", run(s, "1", 30)$error))
  }),
  "a dropped session is closed" = function() {
    pid <- local({ s <- SecureSession$new(); s$describe()$pid })
    invisible(gc()); invisible(gc())
    lives <- function() {
      stat <- suppressWarnings(tryCatch(readLines(file.path("/proc", pid, "stat")), error = function(e) ""))
      nzchar(stat) && !grepl(") [ZX] ", stat)
    }
    for (i in 1:100) { if (!lives()) break; Sys.sleep(0.01) }
    stopifnot(!lives())
  },
  "README" = function() {
    text <- readLines(file.path(here, "../../clients/r/README.md"))
    from <- which(text == "```r") + 1
    code <- text[from:(from + which(text[from:length(text)] == "```")[1] - 2)]
    file <- tempfile(fileext = ".R"); writeLines(code, file)
    out <- system2("Rscript", file, stdout = TRUE, stderr = TRUE)
    stopifnot(identical(out, c("[1] 20", "[1] 5", "[1] NA", "Execution timed out after 0.5 seconds", "[1] 1")))
  },
  "a migrated script" = function() {
    out <- system2("Rscript", file.path(here, "../../examples/securer.R"), stdout = TRUE)
    stopifnot(identical(out, c("[1] 3.5", "[1] \"refused\"")))
  },
  "the table can fail" = function() {
    fails_with("want 2", run_case(list(guest = "python", steps = list(list(do = "execute", code = "1", expect = list(value = 2L))))))
    fails_with("did not fail", run_case(list(guest = "python", steps = list(list(do = "execute", code = "1", fails = "state")))))
  })

cases <- decode(paste(readLines(file.path(here, "table.json"), encoding = "UTF-8"), collapse = "\n"))$cases
all <- c(stats::setNames(lapply(cases, function(c) function() run_case(c)), vapply(cases, function(c) paste("table:", c$name), "")), tests)
bad <- 0
for (i in seq_along(all)) {
  message <- tryCatch({ setTimeLimit(elapsed = 90, transient = TRUE); all[[i]](); NULL }, error = conditionMessage)
  setTimeLimit()
  cat(if (is.null(message)) "" else "not ", "ok ", i, " - ", names(all)[i], "\n", sep = "")
  if (!is.null(message)) { bad <- bad + 1; cat(paste0("# ", strsplit(message, "\n")[[1]]), sep = "\n") }
}
cat("1..", length(all), "\n", sep = "")
quit(status = if (bad > 0) 1 else 0)

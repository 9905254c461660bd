test_that("values are exact", {
  needs_program()
  s <- SecureSession$new()
  on.exit(s$close())
  values <- list(TRUE, NA, 7L, NA_integer_, 0.1, NaN, -Inf, NA_real_, "\u00e9", NA_character_, c(1, NA, 3), c(a = 1L, b = 2L), character(),
    as.Date("2024-02-29"), factor(c("x", "y", NA)), list(1, "a", NULL), list(k = list(1, 2)), matrix(c(1.5, 2, 3, 4), 2), as.raw(0:3), 1+2i,
    data.frame(a = c(1, NA), b = c("x", NA), c = c(TRUE, FALSE)), NULL)
  for (v in values) expect_identical(s$execute("v", context = list(v = v)), v)
})

test_that("output is an attribute of the value, only where there is some", {
  needs_program()
  s <- SecureSession$new()
  on.exit(s$close())
  v <- s$execute("cat('hi\\n'); message('there'); 42")
  expect_identical(as.numeric(v), 42)
  expect_setequal(attr(v, "output"), c("hi", "there"))
  expect_null(attributes(s$execute("42")))
  expect_null(s$execute("cat('hi\\n'); NULL"))
  expect_identical(s$last_output(), "hi")
  seen <- character()
  s$execute("cat('l1\\nl2\\n')", output_handler = function(line) { seen <<- c(seen, line); stop("ignored") })
  expect_identical(seen, c("l1", "l2"))
  seen <- character()
  v <- s$execute("for (i in 1:100) cat(i, '\\n', sep = ''); 1", max_output_lines = 3, output_handler = function(line) seen <<- c(seen, line))
  expect_identical(attr(v, "output"), c("1", "2", "3"))
  expect_length(seen, 100)
})

test_that("errors, and what survives them", {
  needs_program()
  s <- SecureSession$new()
  on.exit(s$close())
  s$execute("kept <- 1")
  fails_with("user error", s$execute("stop('user error')"))
  fails_with("Code has a syntax error and was not executed:", s$execute("if (TRUE {"))
  expect_identical(s$execute("kept"), 1)
  fails_with("Execution timed out after 1 second", s$execute("while (TRUE) {}", timeout = 1))
  fails_with("Execution timed out after 0.5 seconds", s$execute("while (TRUE) {}", timeout = 0.5))
  expect_identical(s$execute("100 + 1"), 101)
  expect_identical(s$execute("1", timeout = NULL), 1)
  e <- tryCatch(s$execute("stop('x')"), error = identity)
  expect_s3_class(e, c("cordon_exception", "cordon_execution_error", "cordon_error", "error"), exact = FALSE)
  expect_false(e$result$success)
})

test_that("checks come in securer's order", {
  needs_program()
  asked <- character()
  s <- SecureSession$new(max_executions = 2, pre_execute_hook = function(code) {
    asked <<- c(asked, code)
    if (identical(code, "broken")) stop("hook broke")
    !identical(code, "no")
  })
  fails_with("Code too long (7 chars, max 3).", s$execute("1 + 1 +", max_code_length = 3, output_handler = 5)) # before handler and syntax
  expect_identical(asked, "1 + 1 +") # the hook sees code that is too long
  fails_with("`output_handler` must be a function", s$execute("1 +", output_handler = 5)) # before syntax
  fails_with("`code` must be a single character string", s$execute(c("1", "2")))
  fails_with("`code` must be a single character string", s$execute(NULL))
  fails_with("`code` must be a single character string", s$execute(7))
  fails_with("syntax error", s$execute("1 +"))
  fails_with("Execution blocked by pre_execute_hook.", s$execute("no"))
  fails_with("pre_execute_hook error: hook broke", s$execute("broken"))
  expect_identical(s$execute("1"), 1) # nothing so far counted
  fails_with("failed", s$execute("stop('failed')")) # this does
  asked <- character()
  fails_with("Maximum executions (2) reached for this session.", s$execute("1"))
  expect_length(asked, 0) # the limit comes before the hook
  s$close()
  fails_with("Session is not running.", s$execute("1"))
})

test_that("only FALSE itself blocks", {
  needs_program()
  for (verdict in list(NULL, TRUE, NA, "no", 0)) {
    s <- SecureSession$new(pre_execute_hook = function(code) verdict)
    expect_identical(s$execute("1"), 1)
    s$close()
  }
})

test_that("one execution at a time, and no restart meanwhile", {
  needs_program()
  s <- NULL
  busy <- securer_tool("busy", "", function() s$execute("1"))
  again <- securer_tool("again", "", function() s$restart())
  s <- SecureSession$new(tools = list(busy, again))
  on.exit(s$close())
  fails_with("<SecureSession> does not support concurrent execute() calls; wait for the current execution to complete.", s$execute("busy()"))
  fails_with("Cannot restart while an execution is in progress.", s$execute("again()"))
})

test_that("restart forgets variables; a closed or killed session comes back", {
  needs_program()
  s <- SecureSession$new(tools = list(TOOLS$add))
  on.exit(s$close())
  s$execute("x <- 1")
  pid <- s$describe()$pid
  expect_true(s$describe()$assurance$no_new_privs)
  expect_identical(s$restart(), s)
  expect_false(identical(s$describe()$pid, pid))
  fails_with("not found", s$execute("x"))
  expect_identical(s$execute("add(1, 1)"), 2)
  tools::pskill(s$describe()$pid, tools::SIGKILL)
  s$restart()
  expect_true(s$is_alive())
  expect_identical(s$execute("add(1, 2)"), 3)
  s$close()
  expect_false(s$is_alive())
  s$restart()
  expect_true(s$is_alive())
  expect_identical(s$execute("add(1, 3)"), 4)
})

test_that("a server that dies takes its sessions along; restart finds another", {
  needs_program()
  c <- cordon_connect()
  s <- SecureSession$new(connection = c)
  tools::pskill(.Call(cordon:::C_peer_pid, c$peer), tools::SIGKILL)
  expect_error(s$execute("1"))
  expect_false(s$is_alive())
  fails_with("the server is gone", s$restart()) # it was given this connection
  s$close()
  s <- SecureSession$new()
  for (c in cordon:::hub$connections) tools::pskill(.Call(cordon:::C_peer_pid, c$peer), tools::SIGKILL)
  expect_error(s$execute("1"))
  s$restart()
  expect_identical(s$execute("6 * 7"), 42)
  s$close()
})

test_that("limits are named and positive", {
  needs_program()
  fails_with("Unknown limit name(s): bogus. Valid names: cpu, memory, fsize, nproc, nofile, stack", SecureSession$new(limits = list(bogus = 10)))
  for (bad in list(-1, 0, "ten", c(10, 20), NA_real_, NULL)) {
    limits <- list()
    limits["cpu"] <- list(bad)
    fails_with("must be a single positive number", SecureSession$new(limits = limits))
  }
  fails_with("Limit 'cpu' must be a single positive number, got: -1", SecureSession$new(limits = list(cpu = -1)))
  fails_with("`limits` must be a named list", SecureSession$new(limits = list(5)))
  s <- SecureSession$new(limits = list(memory = 100e6, cpu = 5, fsize = 1e6, nproc = 20, nofile = 64, stack = 4e6))
  on.exit(s$close())
  l <- s$evaluate("1")$assurance$limits
  expect_identical(as.numeric(l$memory_bytes), 100e6)
  fails_with("positive number", SecureSession$new(max_executions = 0))
  fails_with("must be a function", SecureSession$new(pre_execute_hook = "x"))
})

test_that("one shots close", {
  needs_program()
  expect_identical(execute_r("1 + 1"), 2)
  expect_identical(execute_r("add(1, 1)", tools = list(TOOLS$add), sandbox_strict = TRUE, limits = default_limits()), 2)
  fails_with("timed out", execute_r("repeat {}", timeout = 0.3))
  kept <- NULL
  fails_with("body", with_secure_session(function(s) { kept <<- s; stop("body") }))
  expect_false(kept$is_alive())
  expect_identical(with_secure_session(function(s) s$execute("2"), max_executions = 1), 2)
})

test_that("a dropped session is closed", {
  needs_program()
  pid <- local({ s <- SecureSession$new(); s$describe()$pid })
  invisible(gc()); invisible(gc())
  lives <- function() {
    stat <- suppressWarnings(tryCatch(readLines(file.path("/proc", pid, "stat")), error = function(e) ""))
    nzchar(stat) && !grepl(") [ZX] ", stat)
  }
  for (i in 1:100) { if (!lives()) break; Sys.sleep(0.01) }
  expect_false(lives())
})

test_that("verbose tells one line for each step", { # LOG-01
  needs_program()
  said <- function(verbose) told({
    s <- SecureSession$new(tools = unname(TOOLS[c("add", "fail")]), verbose = verbose)
    s$execute("add(2, 3)")
    try(s$execute("fail()"), silent = TRUE)
    try(s$execute("while (TRUE) {}", timeout = 0.2), silent = TRUE)
    try(s$execute("1 +"), silent = TRUE)
    s$restart()
    s$close()
    s$close()
  })
  expect_identical(said(TRUE), c("[securer] Session started (sandbox=true, pid=N)", "[securer] Tool call: add(a=2, b=3)",
    "[securer] Tool result: add -> 5 (Ns)", "[securer] Execution complete (Ns)", "[securer] Tool call: fail()",
    "[securer] Tool result: fail -> error: tool failed (Ns)", "[securer] Execution error: tool failed (Ns)",
    "[securer] Execution timed out after 0.2s (Ns)", "[securer] Restarting session", "[securer] Session started (sandbox=true, pid=N)",
    "[securer] Session closed"))
  expect_length(said(FALSE), 0)
})

test_that("error texts can be cleaned", {
  needs_program()
  s <- SecureSession$new(sanitize_errors = TRUE)
  on.exit(s$close())
  e <- tryCatch(s$execute("stop('cannot open /home/user/secret.csv on 10.1.2.3')"), error = conditionMessage)
  expect_match(e, "[path]", fixed = TRUE)
  expect_match(e, "[host]", fixed = TRUE)
  expect_match(sanitize_error_message("cannot open file '/Users/john/d/s.csv': No such file"), "[path]", fixed = TRUE)
  expect_identical(sanitize_error_message(7), "Unknown error")
  expect_lte(nchar(sanitize_error_message(strrep("x", 1200), 100)), 100)
})

test_that("the audit log is written, and its path checked", {
  needs_program()
  path <- tempfile(fileext = ".jsonl")
  execute_r("1", audit_log = path)
  lines <- readLines(path)
  for (event in c("session_start", "execute_start", "execute_complete", "session_close")) expect_true(any(grepl(event, lines)), label = event)
  fails_with("audit_log path must be a non-empty character string", SecureSession$new(audit_log = ""))
  fails_with("audit_log path must be a non-empty character string", SecureSession$new(audit_log = 5))
  fails_with("audit_log path must not point to a device file", SecureSession$new(audit_log = "/dev/null"))
  link <- tempfile()
  file.symlink(path, link)
  fails_with("audit_log path must not be a symlink", SecureSession$new(audit_log = link))
})

test_that("only TRUE approves", {
  needs_program()
  pay <- securer_tool("pay", "", function(a) a, list(a = "numeric"))
  pay$approval <- TRUE
  for (verdict in list(1, "no", "", list(allow = FALSE), list(), FALSE)) {
    s <- SecureSession$new(tools = list(pay), on_approval = function(a) verdict)
    fails_with("Tool 'pay' was denied", s$execute("pay(a = 1)"))
    s$close()
  }
  s <- SecureSession$new(tools = list(pay), on_approval = function(a) if (a$detail$a == 1) TRUE else list(value = "free"))
  expect_equal(s$execute("pay(a = 1)"), 1)
  expect_equal(s$execute("pay(a = 2)"), "free")
  s$close()
})

test_that("what guards a session guards its forks, and every event is told", {
  needs_program()
  events <- character()
  s <- SecureSession$new(on_audit = function(e) events <<- c(events, e$event), max_executions = 1,
                         pre_execute_hook = function(code) !grepl("system", code))
  f <- s$fork()
  fails_with("Execution blocked by pre_execute_hook.", f$execute("system('id')"))
  expect_equal(f$execute("1 + 1"), 2)
  fails_with("Maximum executions (1) reached for this session.", f$execute("1"))
  f$close()
  s$close()
  expect_equal(events, c("session_start", "session_start", "execute_start", "execute_complete", "session_close", "session_close"))
})

test_that("files and states of any size", {
  needs_program()
  s <- SecureSession$new()
  data <- as.raw(sample(0:255, 9000000, TRUE))
  s$files$write("all", data)
  s$files$write("pieces", raw(0))
  s$files$append("pieces", data)
  expect_identical(s$files$read("pieces"), data)
  expect_identical(sort(s$files$list()$name), c("all", "pieces"))
  t <- SecureSession$new()
  t$import(s$export())
  expect_identical(t$files$read("all"), data)
  t$close()
  s$close()
})

test_that("odd timeouts and numbers are refused, and nothing hangs", {
  needs_program()
  s <- SecureSession$new(max_executions = 3)
  for (bad in list(0, -1, "5", NaN, c(1, 2))) fails_with("`timeout` must be a positive number", s$execute("1", timeout = bad))
  fails_with("number out of range", SecureSession$new(policy = list(memory_bytes = 2^70)))
  fails_with("Code has a syntax error and was not executed", s$execute("if (TRUE {"))
  e <- tryCatch(s$execute("if (TRUE {", validate = FALSE), error = conditionMessage) # VAL-06: the runtime's own words
  expect_false(grepl("was not executed", e))
  expect_match(e, "unexpected '{'", fixed = TRUE)
  expect_equal(s$execute("1"), 1)
  expect_equal(s$execute("2"), 2)
  fails_with("Maximum executions (3) reached", s$execute("3"))
  s$close()
})

test_that("what evaluate() gives prints as a summary", {
  s <- SecureSession$new(guest = "python")
  on.exit(s$close())
  r <- s$evaluate("print('x' * 500); list(range(1000))")
  lines <- utils::capture.output(print(r))
  expect_match(lines[1], "^<cordon result: success, [0-9]+ ms>$")
  expect_true(any(grepl("stdout: 501 bytes: xxx", lines)) && any(grepl("value: ", lines)))
  expect_true(length(lines) <= 6 && all(nchar(lines) < 120))
  r <- s$evaluate("1/0")
  lines <- utils::capture.output(r)
  expect_match(lines[1], "exception, exit code 1")
  expect_match(lines[2], "error: .*ZeroDivisionError")
  expect_identical(r$success, FALSE)
  expect_type(unclass(r), "list")
})

test_that("exposed ports", {
  skip_if(nzchar(Sys.getenv("CORDON_SERVER")), "a server opens no ports of its machine")
  needs_program()
  s <- SecureSession$new(guest = "sh", languages = "sh", policy = list(expose = list(8000L)))
  on.exit(s$close())
  p <- s$commands$run(paste0("exec python3 -uc 'import socket\ns = socket.create_server((\"127.0.0.1\", 8000))\nprint(\"ready\")\n",
                             "while True:\n  c = s.accept()[0]; c.sendall(c.recv(100).upper()); c.close()'"), background = TRUE)
  while (p$stdout() != "ready\n") Sys.sleep(0.01)
  path <- s$expose(8000)
  expect_true(file.exists(path))
  expect_identical(s$exposed()[[1]]$address, path)
  s$unexpose(8000)
  expect_false(file.exists(path))
  address <- s$expose(8000, host_port = 0)
  con <- socketConnection("127.0.0.1", as.integer(sub(".*:", "", address)), blocking = TRUE, open = "r+b")
  writeLines("hello", con)
  expect_identical(readLines(con, 1, warn = FALSE), "HELLO")
  close(con)
  fails_with("expose+=8001", s$expose(8001))
})

test_that("several languages and commands in one session", {
  needs_program()
  s <- SecureSession$new(guest = "sh", languages = c("python", "sh"))
  on.exit(s$close())
  r <- s$run("x = 20; open('/home/user/f', 'w').write('kept')", language = "python")
  expect_true(r$success && r$start_ms > 0)
  expect_equal(s$run("x", language = "python")$value, 20)
  expect_identical(s$run("x", language = "python", context = "other")$error_kind, "exception")
  expect_equal(s$run("y + 1", language = "python", context = "other", variables = list(y = 1L))$value, 2)
  expect_identical(s$run("cat f")$stdout, "kept")
  expect_identical(s$commands$run("cat f; echo $A; pwd", cwd = "/home/user", env = list(A = "a"))$stdout, "kepta\n/home/user\n")
  other <- s$context("python", "other")
  expect_identical(other, s$context("python", "other"))
  expect_identical(s$context("sh"), s)
  expect_identical(other$files$read_text("f"), "kept")
  other$close()
  fails_with("not running", other$evaluate("1"))
  expect_false(s$run("'y' in globals()", language = "python", context = "other")$value)
  p <- s$commands$run("while read -r l; do echo got $l; done; exit 4", background = TRUE)
  p$write("a\n")
  while (p$stdout() != "got a\n") Sys.sleep(0.01)
  expect_true(p$is_running())
  expect_identical(vapply(s$commands$list(), function(x) as.numeric(x$process), 0), as.numeric(p$id))
  s$commands$connect(p$id)$close_stdin()
  r <- p$wait()
  expect_equal(r$exit_code, 4)
  expect_identical(r$stdout, "got a\n")
  expect_identical(list(p$wait(), p$stdout(), p$stderr(), p$is_running()), list(r, "got a\n", "", FALSE)) # all of it stays readable
  expect_equal(s$commands$connect(p$id)$exit_code(), 4)
  p$kill()
  expect_error(s$commands$connect(9999), class = "cordon_not_found")
  p <- s$commands$run("sleep 1000", background = TRUE)
  expect_null(p$exit_code())
  expect_error(p$write(strrep("b", 200000), timeout = 0), class = "cordon_timeout")
  expect_error(p$wait(0), class = "cordon_timeout")
  p$kill()
  expect_identical(p$wait()$error_kind, "cancelled")
  expect_equal(p$exit_code(), 137)
  expect_identical(s$commands$run("stty size", pty = c(33, 99))$stdout, "33 99\r\n")
  p <- s$commands$run("read -r l; stty size; echo got $l", background = TRUE, pty = TRUE)
  p$resize(41, 123)
  p$write("a\n")
  expect_identical(p$wait()$stdout, "a\r\n41 123\r\ngot a\r\n")
  p <- s$commands$run("wc -c", background = TRUE)
  p$write(strrep("b", 200000), eof = TRUE)
  expect_identical(trimws(p$wait()$stdout), "200000")
})

test_that("an error is R's message, without the class of the condition", {
  needs_program()
  s <- SecureSession$new()
  on.exit(s$close())
  text <- function(code, session = s, ...) tryCatch(session$execute(code, ...), error = conditionMessage)
  expect_identical(text("stop('x')"), "x")
  expect_identical(text("f <- function() stop('deep: x'); f()"), "deep: x")
  expect_identical(text("stop(structure(class = c('own', 'error', 'condition'), list(message = 'm', call = NULL)))"), "m")
  expect_identical(text("y"), "object 'y' not found")
  expect_identical(text("if (TRUE {"), "Code has a syntax error and was not executed:\n<text>:1:10: unexpected '{'\n1: if (TRUE {\n             ^")
  expect_identical(text("if (TRUE {", validate = FALSE), "unexpected '{'")
  e <- tryCatch(s$execute("stop('x')"), error = identity)
  expect_identical(e$result$exception$name, "simpleError")
  p <- SecureSessionPool$new(size = 1)
  expect_identical(text("stop('x')", p), "x")
  p$close()
  python <- SecureSession$new(guest = "python")
  expect_identical(text("raise ValueError('x')", python), "ValueError: x")
  python$close()
})

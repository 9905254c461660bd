# Sessions: values, errors, time, output, limits of use, printing, restarting.
section <- "session"

main <- SecureSession$new()
run <- function(code, ...) main$execute(code, ...)

same("simple code", identical(run("1 + 1"), 2))
same("code of several lines", identical(run("\n  x <- 10\n  y <- 20\n  x + y\n"), 30))
same("variables stay", identical(run("x * 2"), 20))
same("an assignment has its value", identical(run("z <- 5"), 5))
same("an invisible value is returned", identical(run("invisible(42)"), 42))
same("a function of the code stays", identical({
  run("twice <- function(v) v * 2")
  run("twice(4)")
}, 8))
same("executions one after another", identical(c(run("1 + 1"), run("2 + 3"), run("10 * 10")), c(2, 5, 100)))
same("an error in the code is an error", fails(run("stop('user error')"), "user error"))
same("its message is the original's", identical(tryCatch(run("stop('user error')"), error = conditionMessage), "user error"))
same("an unknown object", fails(run("no_such_object"), "object 'no_such_object' not found"))
same("the session goes on after an error", {
  try(run("stop('boom')"), silent = TRUE)
  identical(run("42"), 42)
})
same("a warning does not end the code", identical(plain(run("warning('careful'); 7")), 7))
same("a data frame comes back", identical(run("data.frame(x = 1:3, y = c('a', 'b', 'c'))"), data.frame(x = 1:3, y = c("a", "b", "c"))))
same("a vector comes back", identical(run("c(1, 2, 3)"), c(1, 2, 3)))
same("a named list comes back", identical(run("list(a = 1, b = 'x')"), list(a = 1, b = "x")))
same("NULL comes back", is.null(run("NULL")))

section <- "session/time"
same("code that is done in time", identical(run("1 + 1", timeout = 5), 2))
same("an endless loop ends", fails(run("while (TRUE) {}", timeout = 1), "Execution timed out after 1 second"))
same("the text counts seconds", fails(run("while (TRUE) {}", timeout = 0.5), "Execution timed out after 0.5 seconds"))
same("NULL is no limit", identical(run("42", timeout = NULL), 42))
same("the session is alive and usable afterwards", main$is_alive() && identical(run("100 + 1"), 101))
differs("variables after a timeout", "after a timeout or a crash", identical(run("x"), 10))
same("waiting code is stopped too", fails(run("Sys.sleep(60)", timeout = 0.3), "timed out"))

section <- "session/output"
same("cat() is the attribute output", identical(attr(run("cat('hello world'); TRUE"), "output"), "hello world"))
same("print() is the attribute output", any(grepl("1 2 3", attr(run("print(1:3)"), "output"))))
same("output and value are apart", {
  v <- run("cat('msg\\n'); 42")
  identical(plain(v), 42) && identical(attr(v, "output"), "msg")
})
same("no output, no attribute", is.null(attributes(run("42"))))
same("stderr is output too", any(grepl("noted", attr(run("message('noted'); 1"), "output"))))
collected <- character()
same("output_handler gets each line", {
  run("cat('line1\\nline2\\n'); TRUE", output_handler = function(line) collected <<- c(collected, line))
  identical(collected, c("line1", "line2"))
})
same("an error of output_handler is ignored", isTRUE(plain(run("cat('x\\n'); TRUE", output_handler = function(line) stop("no")))))
same("output_handler must be a function", fails(run("1", output_handler = 5), "`output_handler` must be a function or NULL"))
same("max_output_lines keeps the first lines", identical(attr(run("for (i in 1:100) cat(i, '\\n'); TRUE", max_output_lines = 3), "output"),
                                                        c("1 ", "2 ", "3 ")))
heard <- 0
same("output_handler hears the other lines too", {
  run("for (i in 1:100) cat(i, '\\n'); TRUE", max_output_lines = 3, output_handler = function(line) heard <<- heard + 1)
  heard == 100
})
differs("NULL with output", "code that prints and is `NULL`", is.null(run("cat('x\\n'); NULL")) && identical(main$last_output(), "x"))

section <- "session/limits of use"
same("max_code_length refuses longer code", fails(run("1 + 1", max_code_length = 3), "Code too long (5 chars, max 3)."))
same("max_code_length allows shorter code", identical(run("1 + 1", max_code_length = 100), 2))
same("100000 characters by default", fails(run(strrep("1;", 50001)), "Code too long (100002 chars, max 100000)."))
same("max_executions", with_session(function(s) {
  identical(s$execute("1"), 1) && identical(s$execute("2"), 2) && fails(s$execute("3"), "Maximum executions (2) reached for this session.")
}, max_executions = 2))
same("a failing execution counts", with_session(function(s) {
  try(s$execute("stop('x')"), silent = TRUE)
  fails(s$execute("1"), "Maximum executions (1) reached")
}, max_executions = 1))
same("a syntax error does not count", with_session(function(s) fails(s$execute("1 +"), "syntax error") && identical(s$execute("1"), 1), max_executions = 1))
for (bad in list(0, -1, "two", c(1, 2))) {
  same(paste("max_executions must be a positive number, not", deparse(bad)), fails(SecureSession$new(max_executions = bad)))
}
no_system <- function(code) !grepl("system", code)
same("pre_execute_hook lets code through", with_session(function(s) identical(s$execute("1 + 1"), 2), pre_execute_hook = no_system))
same("pre_execute_hook blocks with FALSE", with_session(function(s) {
  fails(s$execute("system('whoami')"), "Execution blocked by pre_execute_hook.")
}, pre_execute_hook = no_system))
for (allowed in list(TRUE, NULL, NA, 0)) {
  same(paste("pre_execute_hook allows with", deparse(allowed)),
       with_session(function(s) identical(s$execute("42"), 42), pre_execute_hook = function(code) allowed))
}
same("an error of the hook ends the execution", with_session(function(s) {
  fails(s$execute("1"), "pre_execute_hook error: no")
}, pre_execute_hook = function(code) stop("no")))
same("a blocked execution does not count", with_session(function(s) {
  fails(s$execute("system"), "blocked") && identical(s$execute("1"), 1)
}, pre_execute_hook = no_system, max_executions = 1))
same("the hook sees code that is too long", with_session(function(s) {
  fails(s$execute("system", max_code_length = 1), "blocked")
}, pre_execute_hook = no_system))
same("pre_execute_hook must be a function", fails(SecureSession$new(pre_execute_hook = "x")))
same("sanitize_errors hides paths", with_session(function(s) {
  fails(s$execute("stop('cannot open /Users/secret/data.rds')"), "[path]")
}, sanitize_errors = TRUE))
same("without it they are shown", fails(run("stop('cannot open /Users/secret/data.rds')"), "/Users/secret"))

section <- "session/one at a time"
nested <- NULL
nested <- SecureSession$new(tools = list(securer_tool("again", "", function() nested$execute("1")),
                                         securer_tool("renew", "", function() nested$restart())))
same("execute() within an execution is refused", fails(nested$execute("again()"),
  "<SecureSession> does not support concurrent execute() calls; wait for the current execution to complete."))
same("it works again afterwards", identical(nested$execute("1 + 1"), 2))
same("restart() within an execution is refused", fails(nested$execute("renew()"), "Cannot restart while an execution is in progress."))
nested$close()

section <- "session/life"
same("it is alive", isTRUE(main$is_alive()))
same("close() ends it", {
  s <- SecureSession$new()
  s$close()
  identical(s$is_alive(), FALSE)
})
same("close() twice is harmless, and returns the session", {
  s <- SecureSession$new()
  identical(s$close(), s) && identical(s$close(), s)
})
same("close() is invisible", {
  s <- SecureSession$new()
  !withVisible(s$close())$visible
})
same("a closed session executes nothing", {
  s <- SecureSession$new()
  s$close()
  fails(s$execute("1"), "Session is not running.")
})
restarted <- SecureSession$new(tools = list(securer_tool("add", "", function(a, b) a + b, list(a = "numeric", b = "numeric"))))
old <- restarted$describe()$pid
restarted$execute("kept <- 1")
same("restart() starts another process", {
  restarted$restart()
  !identical(restarted$describe()$pid, old) && restarted$is_alive()
})
same("restart() forgets variables", fails(restarted$execute("kept"), "not found"))
same("restart() keeps the tools", identical(restarted$execute("add(10, 20)"), 30))
same("restart() returns the session invisibly", {
  v <- withVisible(restarted$restart())
  !v$visible && identical(v$value, restarted)
})
same("restart() starts a closed session again", {
  restarted$close()
  !restarted$is_alive() && restarted$restart()$is_alive() && identical(restarted$execute("1 + 1"), 2)
})
differs("after its process died", "after a timeout or a crash", {
  fails(restarted$execute("tools::pskill(Sys.getpid(), 9)"), "signal 9") && identical(restarted$execute("add(1, 1)"), 2) &&
    !is.null(restarted$last_result())
})
restarted$close()
same("a session that nobody has is ended", {
  pid <- (function() SecureSession$new()$describe()$pid)()
  for (i in 1:300) {
    gc()
    main$is_alive() # and the server has read what the finalizer sent
    if (!file.exists(file.path("/proc", pid))) break
    Sys.sleep(0.01)
  }
  !file.exists(file.path("/proc", pid))
})

section <- "session/printing"
same("format() of a running session", grepl("^<SecureSession> \\[running\\] pid=[0-9]+ sandbox=[a-z]+ tools=0$", format(main)))
differs("format() says whether there is a sandbox", "`sandbox = FALSE` runs without a wall", grepl("sandbox=enabled", format(main)))
same("format() of a closed one", {
  s <- SecureSession$new()
  grepl("<SecureSession> [stopped] pid=NA", format(s$close()), fixed = TRUE)
})
same("print() names status, tools and sandbox", {
  text <- capture.output(print(main))
  grepl("SecureSession", text[1]) && all(vapply(c("Status", "Tool count", "Sandbox"), function(w) any(grepl(w, text)), NA))
})
same("print() returns the session", identical(withVisible(print(main))$value, main))

section <- "session/verbose"
add_tool <- securer_tool("add", "", function(a, b) a + b, list(a = "numeric", b = "numeric"))
same("nothing is said by default", quiet(with_session(function(s) s$execute("1 + 1"))))
same("nothing is said without verbose", quiet(with_session(function(s) s$execute("1 + 1"), verbose = FALSE)))
told <- messages_of(with_session(function(s) {
  s$execute("add(1, 2)")
  try(s$execute("stop('test error')"), silent = TRUE)
  try(s$execute("while (TRUE) {}", timeout = 0.3), silent = TRUE)
  s$restart()
}, tools = list(add_tool), verbose = TRUE))
for (line in c("[securer] Session started (sandbox=true, pid=", "[securer] Tool call: add(a=1, b=2)", "[securer] Tool result: add -> 3 (",
               "[securer] Execution complete (", "[securer] Execution error: test error (", "[securer] Execution timed out after 0.3s",
               "[securer] Restarting session", "[securer] Session closed")) {
  same(paste0("it says '", line, "'"), any(startsWith(told, line)))
}
same("execute_r() passes verbose on", says(execute_r("1 + 1", verbose = TRUE), "[securer] Session started"))

section <- "session/environment"
for (name in c("SECURER_TEST_SECRET", "SECURER_SOCKET", "SECURER_TOKEN", "R_LIBS", "LD_PRELOAD")) {
  same(paste(name, "is not set in the session"), identical(run(sprintf("Sys.getenv('%s')", name)), ""))
}
for (name in c("PATH", "HOME")) same(paste(name, "is set in the session"), isTRUE(run(sprintf("nzchar(Sys.getenv('%s'))", name))))
differs("R_LIBS_USER", "`R_LIBS_USER` is empty", !grepl("not-ours", run("Sys.getenv('R_LIBS_USER')"), fixed = TRUE))
same("no library of the host's user is searched", !any(grepl("not-ours", run(".libPaths()"))))
same("sessions do not see each other's variables", with_session(function(s) identical(s$execute("exists('twice')"), FALSE)))
same("sessions do not see each other's files", {
  run("writeLines('mine', '/tmp/mine.txt')")
  with_session(function(s) identical(s$execute("file.exists('/tmp/mine.txt')"), FALSE))
})
main$close()

# execute_r(), with_secure_session(), limits, error texts, ellmer.
section <- "execute_r"

helper_add <- securer_tool("add", "", function(a, b) a + b, list(a = "numeric", b = "numeric"))
same("simple code", identical(execute_r("1 + 1", sandbox = FALSE), 2))
same("with a sandbox", identical(execute_r("1 + 1", sandbox = TRUE), 2))
same("with tools", identical(execute_r("add(2, 3)", tools = list(helper_add), sandbox = FALSE), 5))
same("with tools and a sandbox", identical(execute_r("add(6, 7)", tools = list(helper_add), sandbox = TRUE), 13))
same("an error", fails(execute_r("stop('boom')"), "boom"))
same("a timeout", fails(execute_r("Sys.sleep(60)", timeout = 0.5), "timed out"))
same("limits", identical(execute_r("1 + 1", limits = list(memory = 256 * 1024^2)), 2))
same("sandbox_strict where there is a sandbox", identical(execute_r("1 + 1", sandbox_strict = TRUE), 2))

section <- "with_secure_session"
kept <- NULL
same("the value of the function", identical(with_secure_session(function(session) session$execute("1 + 1"), sandbox = FALSE), 2))
same("the session is closed", {
  with_secure_session(function(session) kept <<- session)
  !kept$is_alive()
})
same("the session is closed after an error", {
  kept <- NULL
  try(with_secure_session(function(session) {
    kept <<- session
    stop("boom")
  }), silent = TRUE)
  !is.null(kept) && !kept$is_alive()
})
same("variables stay", identical(with_secure_session(function(session) {
  session$execute("x <- 10")
  session$execute("x * 2")
}), 20))
same("tools", identical(with_secure_session(function(session) session$execute("add(3, 4)"), tools = list(helper_add)), 7))
same("further arguments", fails(with_secure_session(function(session) {
  session$execute("1")
  session$execute("1")
}, max_executions = 1), "Maximum executions (1)"))

section <- "limits"
same("default_limits()", identical(default_limits(), list(cpu = 60, memory = 536870912, fsize = 52428800, nproc = 50, nofile = 256)))
same("an unknown name", fails(SecureSession$new(limits = list(bogus = 10)),
                             "Unknown limit name(s): bogus. Valid names: cpu, memory, fsize, nproc, nofile, stack"))
for (bad in list(-1, 0, "ten", c(10, 20), NA)) {
  same(paste("not a limit:", deparse(bad)), fails(SecureSession$new(limits = list(cpu = bad)), "Limit 'cpu' must be a single positive number, got: "))
}
same("each name is taken", with_session(function(s) identical(s$execute("1 + 1"), 2),
  limits = list(cpu = 10, memory = 512 * 1024^2, fsize = 1024^2, nproc = 40, nofile = 200, stack = 8 * 1024^2)))
same("memory holds", with_session(function(s) identical(s$evaluate("x <- numeric(1e8); x[1e8] <- 1; sum(x)")$error_kind, "memory"), limits = list(memory = 128 * 1024^2)))
same("fsize holds", with_session(function(s) identical(s$evaluate("writeBin(raw(2e6), 'big')")$error_kind, "file_size"), limits = list(fsize = 1024^2)))
differs("limits = list() and sandbox = FALSE", "`sandbox = FALSE` runs without a wall", with_session(function(s) {
  fails(s$execute("writeLines('x', '/etc/x')")) && identical(s$evaluate("x <- numeric(2e8); x[2e8] <- 1; sum(x)")$error_kind, "memory")
}, limits = list(), sandbox = FALSE))
differs("sandbox_strict where there is none", "`sandbox_strict` fails", with_session(function(s) {
  !is.null(s$evaluate("1")$assurance$seccomp)
}, sandbox_strict = TRUE))

section <- "error texts"
clean <- function(...) sanitize_error_message(...)
same("a path", {
  text <- clean("cannot open file '/Users/john/d/s.csv': No such file")
  grepl("[path]", text, fixed = TRUE) && !grepl("john", text) && grepl("No such file", text)
})
for (path in c("/home/ann/x", "/tmp/secret/y", "/var/lib/z", "/etc/passwd", "/opt/app/conf")) {
  same(paste("the path", path), !grepl(path, clean(paste("cannot open", path)), fixed = TRUE))
}
same("a path of Windows", !grepl("john", clean("cannot open C:\\Users\\john\\x.csv")))
same("process ids", identical(lengths(regmatches(t <- clean("process '12345' died, PID 67890"), gregexpr("[pid]", t, fixed = TRUE))), 2L))
same("an address", grepl("[host]", clean("192.168.1.42:5432 refused"), fixed = TRUE) && !grepl("192", clean("192.168.1.42:5432 refused")))
same("a name of a host", !grepl("db.internal", clean("could not connect to db.internal.example"), fixed = TRUE))
same("a trace is cut off", !grepl("bar()", clean("it failed\nCall stack:\n 1. bar()\n 2. foo()"), fixed = TRUE))
same("a long text is cut", {
  text <- clean(strrep("a", 1200), max_length = 100)
  nchar(text) <= 100 && endsWith(text, "...")
})
same("500 characters by default", nchar(clean(strrep("a", 1200))) <= 500)
same("a harmless text stays", identical(clean("object 'x' not found"), "object 'x' not found"))
for (other in list(NULL, 42, NA)) same(paste("not a text:", deparse(other)), identical(clean(other), "Unknown error"))

section <- "ellmer"
without <- tryCatch(requireNamespace("ellmer", quietly = TRUE), error = function(e) FALSE)
if (!without) {
  same("without the package a sentence says so", fails(as_ellmer_tool(), "Package 'ellmer' is required") &&
    fails(securer_as_ellmer_tool(), "Package 'ellmer' is required"))
}
make_ellmer()
tool <- securer_as_ellmer_tool(sandbox = FALSE, timeout = 10)
same("it is a function with a name", is.function(tool) && identical(attr(tool, "name"), "execute_r_code"))
same("and a description", grepl("^Execute R code in a secure sandboxed environment.", attr(tool, "description")))
same("it has one argument, code, a string", identical(names(attr(tool, "arguments")), "code") && attr(tool, "arguments")$code$type == "string")
same("simple code", identical(tool(code = "1 + 1"), "2"))
same("a vector", grepl("1 2 3", tool(code = "c(1, 2, 3)"), fixed = TRUE))
same("an invisible value", identical(tool(code = "invisible(42)"), "42"))
same("a text", identical(tool(code = "'hello'"), "hello"))
same("NULL", identical(tool(code = "NULL"), "NULL"))
same("a data frame", grepl("x", tool(code = "data.frame(x = 1:3, y = letters[1:3])"), fixed = TRUE))
same("30 lines of a data frame", grepl("... (100 rows total)", tool(code = "data.frame(x = 1:100)"), fixed = TRUE))
same("50 lines of anything else", grepl("... (output truncated)", tool(code = "as.list(1:100)"), fixed = TRUE))
same("an error is a result", grepl("test error", tool(code = "stop('test error')")$error))
same("without paths", grepl("[path]", tool(code = "stop('/home/ann/x')")$error, fixed = TRUE))
same("a timeout is a result", grepl("timed out", as_ellmer_tool(timeout = 0.5)(code = "Sys.sleep(60)")$error))
same("tools", identical(as_ellmer_tool(tools = list(helper_add))(code = "add(10, 20)"), "30"))
mine <- SecureSession$new()
same("a session of one's own stays open", identical(as_ellmer_tool(session = mine)(code = "42"), "42") && mine$is_alive())
same("a closed session is a result", {
  t <- as_ellmer_tool(session = mine)
  mine$close()
  grepl("SecureSession is no longer alive.", t(code = "1")$error, fixed = TRUE)
})

section <- "tracing"
same("execute_r() works without a trace", identical(execute_r("1 + 1"), 2))
differs("spans of securetrace", "spans of the package securetrace", !"securetrace" %in% loadedNamespaces())

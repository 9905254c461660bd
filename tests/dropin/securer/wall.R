# The sandbox, and what only securer's inside had.
section <- "sandbox"

walled <- SecureSession$new(sandbox = TRUE, tools = list(securer_tool("add", "", function(a, b) a + b, list(a = "numeric", b = "numeric"))))
inside <- function(code) walled$execute(code)
same("simple code", identical(inside("1 + 1"), 2))
same("code of several lines", identical(inside("x <- 10\ny <- 20\nx + y"), 30))
same("tools", identical(inside("add(2, 3)"), 5))
same("no network", fails(inside("con <- url('http://example.com'); on.exit(close(con)); readLines(con, n = 1)")))
same("no connection to this machine", fails(inside("socketConnection('127.0.0.1', 22)")))
for (path in c("/etc/evil.txt", "/usr/evil.txt", "/home/evil.txt")) same(paste("no writing to", path), fails(inside(sprintf("writeLines('x', '%s')", path))))
same("writing to a temporary file", identical(inside("f <- tempfile(); writeLines('hello', f); v <- readLines(f); unlink(f); v"), "hello"))
marker <- file.path(scratch, "host-file")
writeLines("of the host", marker)
same("files of the host are not there", identical(inside(sprintf("file.exists('%s')", marker)), FALSE))
same("/etc/shadow is not there", fails(inside("readLines('/etc/shadow')")))
# Whether the process of this script can be seen; here it can.
sees_us <- sprintf("{ b <- readBin('/proc/%d/cmdline', 'raw', 4096); b[b == 0] <- as.raw(32); grepl('test_securer', rawToChar(b)) }", Sys.getpid())
same("processes of the host are not there", isTRUE(eval(str2lang(sees_us))) && !isTRUE(tryCatch(inside(sees_us), error = function(e) FALSE)))
same("the user is not root", !identical(inside("unname(Sys.info()['user'])"), "root"))
walled$close()
same("nothing is left of a session", {
  pid <- with_session(function(s) s$describe()$pid)
  for (i in 1:300) {
    if (!file.exists(file.path("/proc", pid))) break
    Sys.sleep(0.01)
  }
  !file.exists(file.path("/proc", pid))
})

section <- "inside"
internal <- c("build_sandbox_config", "build_sandbox_linux", "build_sandbox_macos", "build_sandbox_windows", "build_sandbox_docker",
              "build_sandbox_docker_spawn", "build_sandbox_fallback", "build_limits_only_wrapper", "generate_seatbelt_profile",
              "generate_bwrap_args", "generate_ulimit_commands", "child_runtime_code", "generate_tool_wrappers", "generate_type_checks",
              "type_check_map", "validate_tools", "validate_limits", "ipc_create_server", "ipc_accept", "ipc_read_message", "ipc_write_message",
              "windows_supported_limits", "apply_windows_job_object", "is_docker_spawn_available", "validate_audit_log_path")
for (name in internal) {
  differs(paste0("securer:::", name), "`SECURER_SANDBOX_MODE` and the other variables, `securer:::` helpers", !exists(name, asNamespace("cordon"), inherits = FALSE))
}
differs("private fields", "fields of `private`", with_session(function(s) is.null(s$.__enclos_env__$private$ipc_token)))
differs("the values", "values are JSON", with_session(function(s) {
  identical(s$execute("c(a = 1.123456789, b = NA)"), c(a = 1.123456789, b = NA)) && identical(s$execute("as.Date('2024-02-29')"), as.Date("2024-02-29"))
}))

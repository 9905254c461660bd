# Whatever opens something uses the server that was named, by an argument or by CORDON_SERVER, or says why not.

SERVER <- "http://127.0.0.1:1" # nobody listens there: what still succeeds has used the local program
KEY <- paste0("cordon_", strrep("0", 48))
OPENERS <- list(
  cordon_connect = function(...) request(cordon_connect(...), "policy.show", empty_object()),
  SecureSession = function(...) SecureSession$new(...),
  SecureSessionPool = function(...) SecureSessionPool$new(size = 1, ...),
  execute_r = function(...) execute_r("1", ...),
  with_secure_session = function(...) with_secure_session(function(s) s$execute("1"), ...)
)
WITHOUT_OPTION <- list(cordon_policy = function() cordon_policy(), cordon_check_policy = function() cordon_check_policy(list(timeout_ms = 5)),
                       cordon_sanitize = function() cordon_sanitize("x"))

with_env <- function(values, fn) {
  old <- Sys.getenv(names(values), NA, names = TRUE)
  on.exit(for (n in names(old)) if (is.na(old[[n]])) Sys.unsetenv(n) else do.call(Sys.setenv, stats::setNames(list(old[[n]]), n)))
  do.call(Sys.setenv, as.list(values))
  fn()
}

test_that("a named server is used", {
  needs_program()
  with_env(c(CORDON_SERVER = "", CORDON_KEY = ""), function() {
    for (name in names(OPENERS)) expect_error(OPENERS[[name]](server = SERVER, key = KEY), class = "cordon_unreachable", label = name)
  })
  with_env(c(CORDON_SERVER = SERVER, CORDON_KEY = KEY), function() {
    all <- c(OPENERS, WITHOUT_OPTION)
    for (name in names(all)) expect_error(all[[name]](), class = "cordon_unreachable", label = name)
  })
})

test_that("a server that would be ignored is refused", {
  needs_program()
  with_env(c(CORDON_SERVER = "", CORDON_KEY = ""), function() {
    for (name in names(OPENERS)) {
      expect_error(OPENERS[[name]](key = KEY), "`key` needs `server`", label = name)
      expect_error(OPENERS[[name]](server = ""), "`server` is empty", label = name)
    }
    expect_error(cordon_connect(args = "--verbose", server = SERVER), "exclude `args`")
    link <- cordon_connect()
    on.exit(close_connection(link))
    for (name in c("SecureSession", "SecureSessionPool", "with_secure_session")) {
      expect_error(OPENERS[[name]](connection = link, server = SERVER), "`connection` excludes", label = name)
    }
  })
})

test_that("the last words of a program that ends before it is asked are heard", {
  skip_on_os(c("mac", "windows", "solaris")) # /proc tells when it has ended
  program <- tempfile()
  writeLines(c("#!/bin/sh", paste0("echo '", '{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"not there","data":{"code":"unreachable"}}}', "'")), program)
  Sys.chmod(program, "755")
  link <- cordon_connect(program)
  on.exit(close_connection(link))
  while (file.exists(sprintf("/proc/%d/fd/1", .Call(C_peer_pid, link$peer)))) Sys.sleep(0.01)
  expect_error(request(link, "policy.show"), "not there", class = "cordon_unreachable")
})

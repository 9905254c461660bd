# securer's interface, name by name: what its scripts can say must be sayable here. Arguments of ours come after.
FUNCTIONS <- list(
  "execute_r" = 'code, tools = list(), timeout = 30, sandbox = TRUE, limits = NULL, verbose = FALSE, validate = TRUE, sandbox_strict = FALSE, audit_log = NULL',
  "with_secure_session" = 'fn, tools = list(), sandbox = TRUE, ...',
  "securer_tool" = 'name, description, fn, args = list()',
  "validate_code" = 'code',
  "default_limits" = '',
  "sanitize_error_message" = 'msg, max_length = 500',
  "as_ellmer_tool" = 'session = NULL, tools = list(), sandbox = TRUE, limits = NULL, timeout = 30',
  "securer_as_ellmer_tool" = 'session = NULL, tools = list(), sandbox = TRUE, limits = NULL, timeout = 30',
  "securer_tool_class" = 'name = character(0), description = character(0), fn = function() NULL, args = list()')
SESSION_NEW <- 'tools = list(), sandbox = FALSE, limits = NULL, verbose = FALSE, sandbox_strict = FALSE, audit_log = NULL, max_executions = NULL, pre_execute_hook = NULL, sanitize_errors = FALSE'
POOL_NEW <- 'size = 4L, tools = list(), sandbox = TRUE, limits = NULL, verbose = FALSE, reset_between_uses = FALSE'
SESSION <- list(
  "execute" = 'code, timeout = 30, validate = TRUE, output_handler = NULL, max_tool_calls = NULL, max_code_length = 100000L, max_output_lines = NULL',
  "close" = '', "is_alive" = '', "restart" = '', "tools" = '', "format" = '...', "print" = '...')
POOL <- list("execute" = 'code, timeout = NULL, acquire_timeout = NULL', "size" = '', "available" = '', "status" = '', "format" = '...', "print" = '...', "close" = '')

# Names and defaults, in their order.
expect_formals <- function(fn, text, name) {
  want <- formals(eval(str2lang(paste0("function(", text, ") NULL"))))
  got <- formals(fn)
  # Without the source that a default which is a function remembers.
  defaults <- function(f) vapply(as.list(f), function(x) paste(deparse(x), collapse = " "), "")
  expect_identical(defaults(got)[seq_along(want)], defaults(want), label = name)
}

# Arguments of ours, behind securer's.
MORE <- list(execute_r = c("server", "key"))

test_that("every function of securer's is exported, with its arguments and defaults", {
  exported <- getNamespaceExports("cordon")
  for (name in names(FUNCTIONS)) {
    expect_true(name %in% exported, label = name)
    expect_formals(get(name), FUNCTIONS[[name]], name)
    securers <- names(formals(eval(str2lang(paste0("function(", FUNCTIONS[[name]], ") NULL")))))
    expect_identical(names(formals(get(name))), c(securers, MORE[[name]]), label = name)
  }
  expect_true(all(c("SecureSession", "SecureSessionPool") %in% exported))
})

test_that("sessions and pools are made with securer's arguments", {
  expect_formals(SecureSession$public_methods$initialize, SESSION_NEW, "SecureSession$new")
  expect_formals(SecureSessionPool$public_methods$initialize, POOL_NEW, "SecureSessionPool$new")
  expect_identical(SecureSession$classname, "SecureSession")
  expect_identical(SecureSessionPool$classname, "SecureSessionPool")
})

test_that("a session has securer's methods, and no clone", {
  needs_program()
  s <- SecureSession$new()
  on.exit(s$close())
  expect_s3_class(s, "SecureSession")
  for (name in names(SESSION)) expect_formals(s[[name]], SESSION[[name]], paste0("$", name))
  expect_null(s$clone)
})

test_that("a pool has securer's methods", {
  needs_program()
  p <- SecureSessionPool$new(size = 1)
  on.exit(p$close())
  expect_s3_class(p, "SecureSessionPool")
  for (name in names(POOL)) expect_formals(p[[name]], POOL[[name]], paste0("$", name))
})

test_that("a wrong name, default or order would be noticed", {
  expect_failure(expect_formals(function(code, timeout = 31) NULL, "code, timeout = 30", "x"))
  expect_failure(expect_formals(function(timeout = 30, code) NULL, "code, timeout = 30", "x"))
  expect_failure(expect_formals(function(cod, timeout = 30) NULL, "code, timeout = 30", "x"))
})

test_that("what the functions return has securer's shape", {
  expect_identical(default_limits(), list(cpu = 60, memory = 536870912, fsize = 52428800, nproc = 50, nofile = 256))
  expect_identical(validate_code("1 + 1"), list(valid = TRUE, error = NULL, warnings = character()))
  expect_named(validate_code("1 +"), c("valid", "error", "warnings"))
  needs_program()
  s <- SecureSession$new(tools = list(TOOLS$add))
  expect_identical(s$tools(), list(add = list(name = "add", args = list(a = "numeric", b = "numeric"))))
  expect_match(s$format(), "^<SecureSession> \\[running\\] pid=[0-9]+ sandbox=enabled tools=1$")
  expect_identical(format(s), s$format())
  expect_identical(utils::capture.output(print(s)), c("<SecureSession>", "* Status: running", "* Tool count: 1", "* Sandbox: enabled"))
  expect_invisible(s$close())
  expect_identical(s$close(), s)
  expect_identical(s$format(), "<SecureSession> [stopped] pid=NA sandbox=enabled tools=1")
  expect_identical(utils::capture.output(s$print())[2], "* Status: stopped")
  p <- SecureSessionPool$new(size = 2)
  expect_identical(p$status(), list(total = 2L, busy = 0L, idle = 2L, dead = 0L))
  expect_identical(list(p$size(), p$available()), list(2L, 2L))
  expect_identical(p$format(), "<SecureSessionPool> size=2 idle=2 busy=0")
  expect_identical(utils::capture.output(print(p)), p$format())
  expect_invisible(p$close())
  expect_identical(p$close(), p)
  expect_identical(p$status(), list(total = 0L, busy = 0L, idle = 0L, dead = 0L))
  expect_identical(p$available(), 0L)
  expect_identical(p$format(), "<SecureSessionPool> [closed]")
  none <- SecureSession$new()
  expect_identical(none$tools(), list())
  none$close()
})

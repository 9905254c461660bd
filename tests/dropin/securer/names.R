# Exported names, their arguments and defaults; classes and objects.
section <- "names"

signatures <- list(
  execute_r = "code, tools = list(), timeout = 30, sandbox = TRUE, limits = NULL, verbose = FALSE, validate = TRUE, sandbox_strict = FALSE, audit_log = NULL",
  with_secure_session = "fn, tools = list(), sandbox = TRUE, ...",
  securer_tool = "name, description, fn, args = list()",
  securer_tool_class = "name = character(0), description = character(0), fn = function() NULL, args = list()",
  validate_code = "code",
  default_limits = "",
  as_ellmer_tool = "session = NULL, tools = list(), sandbox = TRUE, limits = NULL, timeout = 30",
  securer_as_ellmer_tool = "session = NULL, tools = list(), sandbox = TRUE, limits = NULL, timeout = 30",
  sanitize_error_message = "msg, max_length = 500")
methods_of_session <- list(
  initialize = "tools = list(), sandbox = FALSE, limits = NULL, verbose = FALSE, sandbox_strict = FALSE, audit_log = NULL, max_executions = NULL, pre_execute_hook = NULL, sanitize_errors = FALSE",
  execute = "code, timeout = 30, validate = TRUE, output_handler = NULL, max_tool_calls = NULL, max_code_length = 100000L, max_output_lines = NULL",
  close = "", is_alive = "", restart = "", tools = "", format = "...", print = "...")
methods_of_pool <- list(
  initialize = "size = 4L, tools = list(), sandbox = TRUE, limits = NULL, verbose = FALSE, reset_between_uses = FALSE",
  execute = "code, timeout = NULL, acquire_timeout = NULL", size = "", available = "", status = "", format = "...", print = "...", close = "")

# The arguments of securer come first, in its order and with its defaults; ours may follow.
begins_with <- function(fn, text) {
  said <- function(f) vapply(as.list(f), function(x) paste(deparse(x), collapse = " "), "")
  want <- said(formals(eval(str2lang(paste0("function(", text, ") NULL")))))
  identical(said(formals(fn))[seq_along(want)], want) || length(want) == 0L
}

for (name in names(signatures)) {
  same(paste0(name, "() is exported, with its arguments and defaults"),
       name %in% getNamespaceExports("cordon") && begins_with(get(name, asNamespace("cordon")), signatures[[name]]))
}
for (name in c("SecureSession", "SecureSessionPool")) {
  same(paste(name, "is exported, with its name"), name %in% getNamespaceExports("cordon") && get(name)$classname == name)
}
for (name in names(methods_of_session)) {
  same(paste0("SecureSession has $", name, " with its arguments and defaults"),
       begins_with(SecureSession$public_methods[[name]], methods_of_session[[name]]))
}
for (name in names(methods_of_pool)) {
  same(paste0("SecureSessionPool has $", name, " with its arguments and defaults"),
       begins_with(SecureSessionPool$public_methods[[name]], methods_of_pool[[name]]))
}

section <- "classes"
same_with("R6", "a session is an object of R6", with_session(function(s) inherits(s, "R6") && R6::is.R6Class(SecureSession)))
same_with("R6", "a pool is an object of R6", with_pool(function(p) inherits(p, "R6"), size = 1))
same_with("R6", "a class can inherit from a session", {
  Doubling <- R6::R6Class("Doubling", inherit = SecureSession, public = list(execute = function(code, ...) 2 * super$execute(code, ...)))
  s <- Doubling$new()
  on.exit(s$close())
  identical(s$execute("21"), 42) && inherits(s, "SecureSession")
})
same("a session cannot be cloned", with_session(function(s) is.null(s$clone)))
same("a session is locked", with_session(function(s) fails(s$new_field <- 1, "cannot add bindings to a locked environment")))
same("a method cannot be replaced", with_session(function(s) fails(s$execute <- 1, "cannot change value of locked binding")))
same("a pool is locked", with_pool(function(p) fails(p$new_field <- 1, "cannot add bindings"), size = 1))
same("printing a class does not show its source", !any(grepl("private|function", capture.output(print(SecureSession)))))

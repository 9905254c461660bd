# One shots, checks, and the bridge to ellmer.

execute_r <- function(code, tools = list(), timeout = 30, sandbox = TRUE, limits = NULL, verbose = FALSE, validate = TRUE,
                      sandbox_strict = FALSE, audit_log = NULL, server = NULL, key = NULL) {
  with_secure_session(function(s) s$execute(code, timeout = timeout, validate = validate), tools = tools, sandbox = sandbox,
                      limits = limits, verbose = verbose, sandbox_strict = sandbox_strict, audit_log = audit_log, server = server, key = key)
}

with_secure_session <- function(fn, tools = list(), sandbox = TRUE, ...) {
  session <- SecureSession$new(tools = tools, sandbox = sandbox, ...)
  on.exit(session$close())
  fn(session)
}

RESTRICTED <- c("system", "system2", "shell", ".Internal", "Sys.setenv", ".Call", ".C", ".Fortran", ".External", "dyn.load", "pipe",
                "processx::run", "callr::r", "socketConnection", "url", "do.call")

validate_code <- function(code) {
  if (!is.character(code) || length(code) != 1 || is.na(code)) {
    stop("`code` must be a single character string", call. = FALSE)
  }
  parsed <- tryCatch(parse(text = code, keep.source = FALSE), error = identity)
  if (inherits(parsed, "error")) return(list(valid = FALSE, error = conditionMessage(parsed), warnings = character()))
  calls <- called(parsed)
  hits <- RESTRICTED[RESTRICTED %in% calls]
  list(valid = TRUE, error = NULL, warnings = sprintf("Code contains call to `%s()` which may be restricted by the sandbox", hits))
}

# The names of all functions that the expressions call.
called <- function(e) {
  if (is.expression(e)) return(unique(unlist(lapply(as.list(e), called))))
  if (!is.call(e)) return(character())
  head <- e[[1]]
  name <- if (is.symbol(head)) as.character(head) else paste(deparse(head), collapse = "")
  name <- c(name, sub("^.*::", "", name)) # base::system is system
  parts <- lapply(as.list(e), function(x) if (missing(x)) character() else called(x))
  unique(c(name, unlist(parts)))
}

cordon_sanitize <- function(message, max_length = 500, connection = NULL) {
  if (!is.character(message) || length(message) != 1 || is.na(message)) return("Unknown error")
  c <- if (is.null(connection)) shared_connection() else connection
  request(c, "sanitize", list(message = message, max = max_length))$message
}

sanitize_error_message <- function(msg, max_length = 500) cordon_sanitize(msg, max_length)

cordon_policy <- function(level = NULL, policy = list(), connection = NULL) {
  c <- if (is.null(connection)) shared_connection() else connection
  p <- empty_object()
  p$level <- level
  if (length(policy) > 0) p$policy <- policy
  request(c, "policy.show", p)$policy
}

cordon_check_policy <- function(policy, level = NULL, connection = NULL) {
  c <- if (is.null(connection)) shared_connection() else connection
  p <- list(policy = policy)
  p$level <- level
  request(c, "policy.check", p)
}

format_tool_result <- function(value) {
  attr(value, "output") <- NULL
  if (is.null(value)) return("NULL")
  if (is.data.frame(value)) {
    lines <- utils::capture.output(print(value, max = 50 * max(1, ncol(value))))
    text <- paste(utils::head(lines, 30), collapse = "\n")
    return(if (length(lines) > 30) paste0(text, "\n... (", nrow(value), " rows total)") else text)
  }
  if (is.atomic(value) && length(value) == 1) return(as.character(value))
  lines <- utils::capture.output(print(value))
  text <- paste(utils::head(lines, 50), collapse = "\n")
  if (length(lines) > 50) paste0(text, "\n... (output truncated)") else text
}

# What a model's call of the tool does: never an error, always a text.
run_for_model <- function(session, code, timeout) {
  if (!session$is_alive()) {
    return(list(error = "SecureSession is no longer alive. Create a new tool with as_ellmer_tool()."))
  }
  tryCatch(list(value = format_tool_result(session$execute(code, timeout = timeout))),
           error = function(e) list(error = cordon_sanitize(conditionMessage(e))))
}

as_ellmer_tool <- function(session = NULL, tools = list(), sandbox = TRUE, limits = NULL, timeout = 30) {
  if (!requireNamespace("ellmer", quietly = TRUE)) {
    stop("Package 'ellmer' is required for as_ellmer_tool(). Install it with: install.packages(\"ellmer\")", call. = FALSE)
  }
  if (is.null(session)) session <- SecureSession$new(tools = tools, sandbox = sandbox, limits = limits)
  run <- function(code) {
    r <- run_for_model(session, code, timeout)
    if (is.null(r$error)) r$value else ellmer::ContentToolResult(error = r$error)
  }
  ellmer::tool(run, name = "execute_r_code",
               description = paste("Execute R code in a secure sandboxed environment. Files, network and resources are limited. Variables stay",
                                   "between calls. Pass one string of valid R code; the value of the last expression is returned."),
               arguments = list(code = ellmer::type_string("R code to execute")))
}

# Its name until securer renamed it.
securer_as_ellmer_tool <- function(session = NULL, tools = list(), sandbox = TRUE, limits = NULL, timeout = 30) {
  as_ellmer_tool(session, tools, sandbox, limits, timeout)
}

# validate_code(), and validate = in executions.
section <- "validate"

same("valid code", identical(validate_code("1 + 1"), list(valid = TRUE, error = NULL, warnings = character())))
same("several lines", isTRUE(validate_code("\n  x <- 10\n  y <- 20\n  x + y\n")$valid))
same("a syntax error", {
  v <- validate_code("if (TRUE {")
  identical(v$valid, FALSE) && is.character(v$error) && grepl("unexpected", v$error)
})
same("an open brace", {
  v <- validate_code("function(x) { x + 1")
  identical(v$valid, FALSE) && is.character(v$error)
})
for (empty in c("", "   \n\n  ")) same(paste("nothing:", deparse(empty)), isTRUE(validate_code(empty)$valid) && is.null(validate_code(empty)$error))
for (bad in list(NULL, 42, c("a", "b"), list("a"), NA)) {
  same(paste("not a text:", deparse(bad)), fails(validate_code(bad), "`code` must be a single character string"))
}
named <- c("system", "system2", "shell", ".Internal", "Sys.setenv", ".Call", ".C", ".Fortran", ".External", "dyn.load", "pipe", "processx::run",
           "callr::r", "socketConnection", "url", "do.call")
for (name in named) {
  same(paste0(name, "() is named"), {
    v <- validate_code(paste0("x <- ", name, "('y')"))
    v$valid && sprintf("Code contains call to `%s()` which may be restricted by the sandbox", name) %in% v$warnings
  })
}
same("harmless code is not", length(validate_code("mean(c(1, 2, 3))")$warnings) == 0L)
same("two calls, two warnings", length(validate_code("system('ls'); system2('echo', 'hi')")$warnings) == 2L)

section <- "validate/execute"
checked <- SecureSession$new()
same("a syntax error is refused", fails(checked$execute("if (TRUE {"), "Code has a syntax error and was not executed:\n"))
same("with the parser's message", fails(checked$execute("if (TRUE {"), "<text>:1:10: unexpected '{'"))
same("the session is alive", checked$is_alive())
same("validate = FALSE: R itself complains", fails(checked$execute("if (TRUE {", validate = FALSE), "unexpected"))
same("valid code runs", identical(checked$execute("1 + 1", validate = TRUE), 2))
same("execute_r() refuses too", fails(execute_r("if (TRUE {"), "syntax error"))
same("execute_r(validate = FALSE)", fails(execute_r("if (TRUE {", validate = FALSE), "unexpected"))
differs("who sees the warnings", "warnings of `validate_code()`", {
  checked$execute("f <- function() system('id')")
  any(grepl("`system()`", unlist(checked$last_result()$warnings), fixed = TRUE))
})
checked$close()

test_that("code is checked without running", {
  expect_true(validate_code("")$valid)
  expect_true(validate_code("  \n ")$valid)
  expect_false(validate_code("if (TRUE {")$valid)
  expect_true(nzchar(validate_code("if (TRUE {")$error))
  expect_length(validate_code("mean(c(1,2,3)); curl(1); my.url(2)")$warnings, 0)
  for (bad in list(c("a", "b"), NULL, 7, NA_character_)) {
    fails_with("`code` must be a single character string", validate_code(bad))
  }
})

test_that("each of securer's sixteen names is warned of, wherever it stands", {
  names <- c("system", "system2", "shell", ".Internal", "Sys.setenv", ".Call", ".C", ".Fortran", ".External", "dyn.load", "pipe",
             "processx::run", "callr::r", "socketConnection", "url", "do.call")
  expect_length(names, 16)
  for (n in names) {
    expect_identical(validate_code(paste0("x <- 1; y <- ", n, "(x)"))$warnings,
                     sprintf("Code contains call to `%s()` which may be restricted by the sandbox", n))
  }
  expect_length(validate_code("base::system('id')")$warnings, 1)
  expect_length(validate_code("x <- 1; system('id'); y <- .Call('z'); do.call(f, list())")$warnings, 3)
})

test_that("names of a result are exact, and the value has the name of the documentation, too", {
  needs_program()
  s <- SecureSession$new()
  on.exit(s$close())
  r <- s$evaluate("6 * 7")
  expect_identical(r$result, 42)
  expect_identical(r$value, 42)
  expect_null(r$resul)
})

test_that("an execution shows the warnings", {
  needs_program()
  s <- SecureSession$new()
  on.exit(s$close())
  s$execute("eval(1)")
  expect_match(unlist(s$last_result()$warnings), "`eval()`", fixed = TRUE, all = FALSE)
  s$execute("eval(1)", validate = FALSE)
  expect_length(s$last_result()$warnings, 0)
})

test_that("policies can be looked at", {
  needs_program()
  expect_identical(as.numeric(cordon_policy("strict")$timeout_ms), 10000)
  expect_true(cordon_check_policy(list(timeout_ms = 5))$valid)
  expect_false(cordon_check_policy(list(timout_ms = 5))$valid)
})

test_that("what a model sees is always a text", {
  needs_program()
  s <- SecureSession$new()
  run <- cordon:::run_for_model
  expect_identical(run(s, "6 * 7", 30)$value, "42")
  expect_identical(run(s, "NULL", 30)$value, "NULL")
  expect_match(run(s, "stop('oops')", 30)$error, "oops")
  expect_match(run(s, "data.frame(x = 1:100)", 30)$value, "... (100 rows total)", fixed = TRUE)
  expect_match(run(s, "1:5000", 30)$value, "... (output truncated)", fixed = TRUE)
  s$close()
  expect_identical(run(s, "1", 30)$error, "SecureSession is no longer alive. Create a new tool with as_ellmer_tool().")
})

test_that("without ellmer there is a plain error", {
  skip_if(requireNamespace("ellmer", quietly = TRUE), "ellmer is here")
  fails_with("Package 'ellmer' is required", as_ellmer_tool())
  fails_with("Package 'ellmer' is required", securer_as_ellmer_tool())
})

# ellmer's three functions, as a package of its own: what we hand them is what counts.
test_that("a session becomes ellmer's tool", {
  needs_program()
  skip_if(requireNamespace("ellmer", quietly = TRUE), "ellmer itself is here")
  folder <- tempfile("lib")
  package <- file.path(folder, "src", "ellmer")
  dir.create(file.path(package, "R"), recursive = TRUE)
  writeLines(c("Package: ellmer", "Version: 0.3.0", "Title: T", "Description: D.", "License: GPL-2", "Author: A", "Maintainer: A <a@example.org>"),
             file.path(package, "DESCRIPTION"))
  writeLines("export(tool, type_string, ContentToolResult)", file.path(package, "NAMESPACE"))
  writeLines(c("tool <- function(fun, description, ..., arguments = list(), name = NULL) list(fun = fun, description = description, arguments = arguments, name = name)",
               "type_string <- function(description = NULL, required = TRUE) list(type = 'string', description = description)",
               "ContentToolResult <- function(value = NULL, error = NULL) list(value = value, error = error)"), file.path(package, "R", "all.R"))
  script <- tempfile(fileext = ".R")
  writeLines(c(sprintf("r <- system2(file.path(R.home('bin'), 'R'), c('CMD', 'INSTALL', '--no-test-load', '-l', '%s', '%s'), stdout = FALSE, stderr = FALSE)", folder, package),
               sprintf(".libPaths(c('%s', .libPaths()))", folder),
               "library(cordon)",
               "s <- SecureSession$new()",
               "t <- as_ellmer_tool(s, timeout = 5)",
               "cat(t$name, names(t$arguments), t$arguments$code$type, substr(t$description, 1, 49), sep = '\\n')",
               "cat(t$fun('6 * 7'), '\\n', sep = '')",
               "cat(t$fun(\"stop('/home/user/x')\")$error, '\\n', sep = '')",
               "s$close()",
               "cat(t$fun('1')$error, '\\n', sep = '')",
               "own <- securer_as_ellmer_tool()",
               "cat(own$fun('1 + 1'), '\\n', sep = '')"), script)
  out <- run_script(script)
  expect_identical(out[1:5], c("execute_r_code", "code", "string", "Execute R code in a secure sandboxed environment.", "42"))
  expect_match(out[6], "[path]", fixed = TRUE)
  expect_match(out[7], "no longer alive")
  expect_identical(out[8], "2")
})

test_that("parameters become the JSON that is meant", {
  json <- function(x) cordon:::to_json(list(x = x))
  for (x in list(list(30000, "30000"), list(-3L, "-3"), list(-0, "0"), list(1e15, "1000000000000000"), list(2^62, "4611686018427387904"),
                 list(1.5, "1.5"), list(Inf, "null"), list(NA, "null"), list(TRUE, "true"), list("a\"\n", "\"a\\\"\\n\""),
                 list(NULL, "null"), list(c("a", "b"), "[\"a\",\"b\"]"), list(I("a"), "[\"a\"]"), list(list(), "[]"),
                 list(factor("f"), "\"f\""), list(list(1, b = NULL), "{\"\":1,\"b\":null}"))) {
    expect_identical(json(x[[1]]), paste0("{\"x\":", x[[2]], "}"))
  }
  latin <- "\xe4"
  Encoding(latin) <- "latin1"
  expect_identical(cordon:::to_json(stats::setNames(list(latin), latin)), "{\"\u00e4\":\"\u00e4\"}")
})

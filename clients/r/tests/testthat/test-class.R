test_that("a session is a locked object", {
  needs_program()
  s <- SecureSession$new()
  on.exit(s$close())
  fails_with("cannot add bindings to a locked environment", s$note <- 1)
  fails_with("cannot change value of locked binding for 'execute'", s$execute <- function(code) "replaced")
  fails_with("cannot change value of locked binding for 'files'", s$files <- NULL)
  p <- SecureSessionPool$new(size = 1)
  fails_with("cannot add bindings to a locked environment", p$note <- 1)
  fails_with("cannot change value of locked binding for 'execute'", p$execute <- NULL)
  p$close()
})

test_that("a class prints what can be called, not its source", {
  text <- utils::capture.output(print(SecureSession))
  expect_identical(text[1], "<SecureSession> class")
  expect_match(text, "SecureSession$new(tools = list(), sandbox = FALSE", fixed = TRUE, all = FALSE)
  expect_match(text, "$execute(code, timeout = 30, validate = TRUE", fixed = TRUE, all = FALSE)
  expect_false(any(grepl("function|private|bytecode|environment", text)))
  expect_identical(utils::capture.output(SecureSessionPool)[1], "<SecureSessionPool> class")
})

test_that("classes of R6 inherit from them", {
  needs_program()
  skip_if_not_installed("R6")
  Counting <- R6::R6Class("Counting", inherit = SecureSession, public = list(
    count = 0,
    execute = function(code, ...) {
      self$count <- self$count + 1
      super$execute(paste0("(", code, ") * 2"), ...)
    }))
  s <- Counting$new(tools = list(TOOLS$add))
  on.exit(s$close())
  expect_identical(class(s), c("Counting", "SecureSession", "R6"))
  expect_identical(s$execute("add(1, 2)"), 6)
  expect_identical(s$count, 1)
  expect_match(format(s), "^<Counting> \\[running\\]")
  fork <- s$fork()
  expect_identical(fork$execute("add(1, 2)"), 3)
  fork$close()
  Twice <- R6::R6Class("Twice", inherit = SecureSessionPool, public = list(execute = function(code, ...) 2 * super$execute(code, ...)))
  p <- Twice$new(size = 1)
  expect_identical(p$execute("21"), 42)
  p$close()
})

test_that("loading the package loads neither R6 nor the tables of show()", {
  skip_if_not_installed("R6")
  script <- tempfile(fileext = ".R")
  writeLines(c("library(cordon)",
               "cat(isNamespaceLoaded('R6'), '\\n')",
               "cat(class(SecureSession), '\\n')",
               "cat(isNamespaceLoaded('R6'), identical(SecureSession, cordon::SecureSession), '\\n')",
               "cat(environmentName(parent.env(get('.__T__show:methods', asNamespace('cordon')))), '\\n')",
               "securer_tool('add', 'Adds.', function(a) a, list(a = 'numeric'))"), script)
  out <- run_script(script, paste0("R_LIBS=", paste(.libPaths(), collapse = ":")))
  expect_identical(out, c("FALSE ", "cordon_class R6ClassGenerator ", "TRUE TRUE ", "base ", "<securer_tool>", "  Name: add",
                          "  Description: Adds.", "  Args: 1 args"))
})

test_that("without R6 they do the same", {
  needs_program()
  script <- tempfile(fileext = ".R")
  writeLines(c("stopifnot(!requireNamespace('R6', quietly = TRUE))",
               "library(cordon)",
               "s <- SecureSession$new(tools = list(securer_tool('add', '', function(a, b) a + b, list(a = 'numeric', b = 'numeric'))))",
               "cat(class(s), s$execute('add(2, 3)'), names(s$tools()), '\\n')",
               "for (e in expression(s$note <- 1, s$execute <- 1, s$execute('stop(\"x\")'))) cat(tryCatch(eval(e), error = conditionMessage), '\\n')",
               "f <- s$fork()",
               "f$files$write('a', 'b')",
               "cat(f$files$read_text('a'), f$execute('add(1, 1)'), '\\n')",
               "f$close()",
               "s$close()",
               "cat(s$format(), '\\n')",
               "p <- SecureSessionPool$new(size = 1)",
               "cat(class(p), p$execute('1 + 1'), format(p$close()), '\\n')",
               "print(SecureSession)"), script)
  # Only R's own library, and the one that has this package.
  library <- tempfile("lib")
  dir.create(library)
  file.symlink(find.package("cordon"), file.path(library, "cordon"))
  out <- run_script(script, c(paste0("R_LIBS=", library), "R_LIBS_SITE=/nonexistent", "R_LIBS_USER=/nonexistent"))
  expect_identical(out[1:7], c("SecureSession 5 add ", "cannot add bindings to a locked environment ",
    "cannot change value of locked binding for 'execute' ", "x ", "b 2 ", "<SecureSession> [stopped] pid=NA sandbox=enabled tools=1 ",
    "SecureSessionPool 2 <SecureSessionPool> [closed] "))
  expect_identical(out[8:length(out)], utils::capture.output(print(SecureSession)))
})

test_that("the session of the README", {
  needs_program()
  text <- readLines(repository("clients/r/README.md"))
  from <- which(text == "```r") + 1
  code <- text[from:(from + which(text[from:length(text)] == "```")[1] - 2)]
  file <- tempfile(fileext = ".R")
  writeLines(code, file)
  expect_identical(run_script(file), c("[1] 20", "[1] 5", "[1] NA", "Execution timed out after 0.5 seconds", "[1] 1"))
})

test_that("a migrated script", {
  needs_program()
  expect_identical(run_script(repository("examples/securer.R")), c("[1] 3.5", "[1] \"refused\""))
})

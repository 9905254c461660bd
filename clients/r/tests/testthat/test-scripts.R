test_that("the session of the README", {
  needs_program()
  text <- readLines(repository("clients/r/README.md"))
  from <- which(text == "```r") + 1
  code <- text[from:(from + which(text[from:length(text)] == "```")[1] - 2)]
  file <- tempfile(fileext = ".R")
  writeLines(code, file)
  expect_identical(run_script(file), c("[1] 20", "[1] 5", "[1] NA", "Execution timed out after 0.5 seconds", "[1] 1"))
})

test_that("migrated scripts", {
  needs_program()
  expect_identical(run_script(repository("examples/securer.R")), c("[1] 3.5", "[1] \"refused\""))
  expect_identical(run_script(repository("examples/securer_more.R")), c("heard: step 1", "heard: step 2", "heard: step 3", "[1] 6", "[1] \"step 1\"",
    "Execution blocked by pre_execute_hook.", "Execution timed out after 0.5 seconds", "[1] TRUE", "[1] TRUE", "[1] 1 4 9", "[1] 2", "[1] 11", "[1] 21",
    "[1] \"Code contains call to `system()` which may be restricted by the sandbox\""))
})

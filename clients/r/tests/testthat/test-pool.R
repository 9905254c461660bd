test_that("a pool of sessions", {
  needs_program()
  p <- SecureSessionPool$new(size = 2)
  expect_identical(p$execute("1 + 1"), 2)
  fails_with("division", p$execute("stop('division')"))
  fails_with("Code has a syntax error and was not executed:", p$execute("1 +"))
  fails_with("`code` must be a single character string", p$execute(1))
  fails_with("Execution timed out after 0.3 seconds", p$execute("repeat {}", timeout = 0.3))
  expect_identical(p$execute("7", acquire_timeout = 5), 7)
  expect_identical(attr(p$execute("cat('hi\\n'); 1"), "output"), "hi")
  p$close()
  fails_with("Pool is closed.", p$execute("1"))
})

test_that("state stays between uses, as in securer, unless a reset is asked for", {
  needs_program()
  kept <- SecureSessionPool$new(size = 1)
  kept$execute("x <- 5")
  expect_identical(kept$execute("x + 1"), 6)
  kept$close()
  clean <- SecureSessionPool$new(size = 1, reset_between_uses = TRUE)
  clean$execute("x <- 5")
  fails_with("not found", clean$execute("x", acquire_timeout = 10))
  clean$close()
})

test_that("all busy: an error at once, or after the time to wait", {
  needs_program()
  p <- NULL
  nested <- securer_tool("nested", "", function(wait) {
    status <- p$status()
    stopifnot(status$busy == 1L, p$available() == 0L)
    tryCatch(p$execute("1", acquire_timeout = if (wait > 0) wait), error = conditionMessage)
  }, list(wait = "numeric"))
  p <- SecureSessionPool$new(size = 1, tools = list(nested))
  on.exit(p$close())
  expect_identical(p$execute("nested(0)"), "All sessions are busy.")
  expect_identical(p$execute("nested(0.2)"), "All sessions are busy.")
  expect_identical(p$execute("1"), 1)
})

test_that("sizes are checked", {
  needs_program()
  for (bad in list(0, -1, NA_real_, "two", c(1, 2))) fails_with("must be at least 1", SecureSessionPool$new(size = bad))
  for (bad in list(101, 1e12)) fails_with("must not exceed 100", SecureSessionPool$new(size = bad))
  fails_with("Duplicate tool names", SecureSessionPool$new(size = 1, tools = list(TOOLS$add, TOOLS$add)))
})

test_that("a pool tells what it does where it is asked to", {
  needs_program()
  lines <- told({
    p <- SecureSessionPool$new(size = 1, tools = list(TOOLS$add), verbose = TRUE)
    p$execute("add(1, 2)")
    p$close()
  })
  expect_identical(lines, paste("[securer]", c("Pool started (sandbox=true, size=1)", "Tool call: add(a=1, b=2)", "Tool result: add -> 3 (Ns)",
    "Execution complete (Ns)", "Pool closed")))
})

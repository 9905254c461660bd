# With CORDON_TAP the same run is also written down as TAP, for whoever counts the tests.
if (requireNamespace("testthat", quietly = TRUE)) {
  library(testthat)
  library(cordon)
  tap <- Sys.getenv("CORDON_TAP")
  reporter <- check_reporter()
  if (nzchar(tap)) reporter <- MultiReporter$new(list(CheckReporter$new(), TapReporter$new(file = tap)))
  test_check("cordon", reporter = reporter)
}

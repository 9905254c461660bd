# What needs the program is left out where there is none; what needs the repository, where there is only the package.
needs_program <- function() {
  skip_if_not(nzchar(Sys.getenv("CORDON", Sys.which("cordon"))), "the program cordon is here")
}
repository <- function(...) {
  root <- Sys.getenv("CORDON_SOURCE")
  skip_if_not(nzchar(root), "CORDON_SOURCE names the repository")
  file.path(root, ...)
}

fails_with <- function(text, expr) expect_error(expr, text, fixed = TRUE)

# A script in an R of its own: what it prints.
run_script <- function(path, env = character()) {
  system2(file.path(R.home("bin"), "Rscript"), path, stdout = TRUE, stderr = TRUE, env = c("R_TESTS=", env))
}

# The messages of an expression, without their figures.
told <- function(expr) {
  lines <- character()
  withCallingHandlers(expr, message = function(m) {
    lines <<- c(lines, sub("\n$", "", conditionMessage(m)))
    invokeRestart("muffleMessage")
  })
  sub("pid=[0-9]+", "pid=N", sub("\\([0-9.]+s\\)$", "(Ns)", lines))
}

TOOLS <- list(
  add = securer_tool("add", "Adds two numbers.", function(a, b) a + b, list(a = "numeric", b = "numeric")),
  echo = securer_tool("echo", "", function(v) v, list(v = NULL)),
  fail = securer_tool("fail", "", function() stop("tool failed")),
  pi = securer_tool("pi", "", function() 3.141592653589793),
  nothing = securer_tool("nothing", "", function() NULL))

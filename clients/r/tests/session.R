# Runs where the program is; elsewhere there is nothing to test against.
if (nzchar(Sys.getenv("CORDON", Sys.which("cordon")))) {
  library(cordon)
  add <- securer_tool("add", "Adds.", function(a, b) a + b, list(a = "numeric", b = "numeric"))
  with_secure_session(function(s) stopifnot(identical(s$execute("add(2, 3)"), 5)), tools = list(add))
}

test_that("a tool has securer's properties", {
  t <- securer_tool("add", "Adds.", function(a, b) a + b, list(a = "numeric", b = "numeric"))
  expect_s4_class(t, "securer_tool")
  expect_true(inherits(t, "securer_tool"))
  expect_identical(t@name, "add")
  expect_identical(t@description, "Adds.")
  expect_identical(t@fn(1, 2), 3)
  expect_identical(t@args, list(a = "numeric", b = "numeric"))
  expect_identical(t$name, "add")
  expect_identical(format(t), "<securer_tool>\n  Name: add\n  Description: Adds.\n  Args: 2 args")
  expect_identical(utils::capture.output(print(t)), c("<securer_tool>", "  Name: add", "  Description: Adds.", "  Args: 2 args"))
  expect_identical(utils::capture.output(methods::show(t)), utils::capture.output(print(t)))
  long <- format(securer_tool("x", strrep("d", 100), identity))
  expect_match(long, paste0("Description: ", strrep("d", 57), "...\n"), fixed = TRUE)
  fails_with("a tool has no `aproval`", t$aproval <- TRUE)
})

test_that("names and types are checked when it is made", {
  for (bad in list('x; system("id")', "my tool", "1tool", "tool$name", "", NA_character_, c("a", "b"), 7)) {
    fails_with("Tool name must be a valid R identifier, not", securer_tool(bad, "", identity))
  }
  fails_with("Tool name must be a valid R identifier, not \"my tool\"", securer_tool("my tool", "", identity))
  fails_with("Argument name must be a valid R identifier", securer_tool("x", "", identity, list("a b" = "numeric")))
  fails_with("`args` must be a named list", securer_tool("x", "", identity, list("numeric")))
  fails_with("`fn` must be a function", securer_tool("x", "", 5))
  fails_with("`description` must be", securer_tool("x", NULL, identity))
  expect_identical(securer_tool(".ok_1", "", identity)@args, list())
})

test_that("code calls them; the host checks", {
  needs_program()
  s <- SecureSession$new(tools = unname(TOOLS[c("add", "fail")]))
  on.exit(s$close())
  expect_identical(s$execute("add(2, 3)"), 5)
  expect_named(s$tools(), c("add", "fail"))
  fails_with("tool failed", s$execute("fail()"))
  fails_with("Tool 'add': argument 'a' must be numeric, got character", s$execute("add('hello', 3)"))
  expect_error(s$execute("add(1, 2, evil = 3)"))
  expect_error(s$execute("fail(1)")) # no arguments means none
  fails_with("Maximum tool calls (2) exceeded", s$execute("add(1, 1); add(1, 1); add(1, 1)", max_tool_calls = 2))
  fails_with("Duplicate tool names: \"add\"", SecureSession$new(tools = list(TOOLS$add, TOOLS$add)))
  fails_with("Each tool must be created with securer_tool()", SecureSession$new(tools = list(1)))
})

test_that("every type of securer's is checked, and others are not", {
  needs_program()
  types <- list(numeric = "1.5", character = "'a'", logical = "TRUE", integer = "1L", list = "list(1, 'a')", data.frame = "data.frame(x = 1:2)")
  tools <- lapply(names(types), function(t) securer_tool(paste0("take.", t), "", function(v) class(v)[1], list(v = t)))
  s <- SecureSession$new(tools = c(tools, securer_tool("take.any", "", function(v) "taken", list(v = "whatever"))))
  on.exit(s$close())
  for (t in names(types)) {
    expect_identical(as.character(s$execute(sprintf("take.%s(%s)", t, types[[t]]))), t)
    wrong <- if (t == "character") "5" else "'wrong'"
    expect_error(s$execute(sprintf("take.%s(%s)", t, wrong)), t, fixed = TRUE)
    expect_identical(s$execute(sprintf("take.any(%s)", types[[t]])), "taken")
  }
})

test_that("a named list of functions still works, with a warning", {
  needs_program()
  expect_warning(s <- SecureSession$new(tools = list(double = function(x) x * 2)), "deprecated")
  expect_identical(s$execute("double(21)"), 42)
  expect_identical(s$tools(), list(double = list(name = "double", args = NULL)))
  s$close()
  expect_warning(fails_with("valid R identifier", SecureSession$new(tools = list("a b" = identity))), "deprecated")
})

test_that("a call can wait for approval", {
  needs_program()
  pay <- securer_tool("pay", "", function(amount) paste("paid", amount), list(amount = "numeric"))
  pay$approval <- TRUE
  n <- 0
  s <- SecureSession$new(tools = list(pay), on_approval = function(a) { n <<- n + 1; if (n == 1) TRUE else if (n == 2) list(value = "free") else "too much" })
  on.exit(s$close())
  expect_identical(s$execute("pay(5)"), "paid 5")
  expect_identical(s$execute("pay(5)"), "free")
  fails_with("too much", s$execute("pay(5)"))
})

test_that("the class makes tools too, and a session checks them", {
  t <- securer_tool_class("add", "Adds.", function(a, b) a + b, list(a = "numeric", b = "numeric"))
  expect_identical(format(t), "<securer_tool>\n  Name: add\n  Description: Adds.\n  Args: 2 args")
  expect_true(inherits(t, "securer_tool"))
  empty <- securer_tool_class()
  expect_identical(list(empty@name, empty@description, empty@fn(), empty@args), list(character(0), character(0), NULL, list()))
  expect_error(securer_tool_class(name = 5), "name")
  fails_with("Tool name must be a valid R identifier", SecureSession$new(tools = list(empty)))
})

test_that("code cannot replace a tool", { # TOOL-27
  needs_program()
  s <- SecureSession$new(tools = list(TOOLS$add))
  on.exit(s$close())
  for (code in c("add <- function(...) 'replaced'", "assign('add', 5)", "add = 1", "for (add in 1:2) 1", ".securer_call_tool <- 1")) {
    expect_error(s$execute(code), "cannot change value of locked binding for '(add|.securer_call_tool)'")
  }
  fails_with("cannot change value of locked binding for 'add'", s$execute("1", context = list(add = 1)))
  expect_identical(s$execute("local({ add <- 7; add })"), 7) # a variable of a function is no tool
  expect_identical(s$execute("rm(list = ls(all.names = TRUE)); add(2, 3)"), 5)
  s$restart()
  fails_with("locked binding", s$execute("add <- 1"))
  fork <- s$fork()
  fails_with("locked binding", fork$execute("add <- 1"))
  fork$close()
  expect_identical(s$execute("add(2, 3)"), 5)
})

test_that("tools can be called by name, as in securer", {
  needs_program()
  s <- SecureSession$new(tools = list(TOOLS$add))
  on.exit(s$close())
  expect_identical(s$execute(".securer_call_tool('add', a = 2, b = 3)"), 5)
  fails_with("Unexpected arguments for tool 'add': 'evil'", s$execute(".securer_call_tool('add', a = 1, b = 2, evil = 3)"))
  fails_with("Unknown tool: nope", s$execute(".securer_call_tool('nope')"))
  fails_with("Unknown tool: <invalid>", s$execute(".securer_call_tool('../../etc/passwd')"))
})

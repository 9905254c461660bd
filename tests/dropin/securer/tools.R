# Tools: how they are made, called, checked and protected.
section <- "tools"

add <- securer_tool("add", "Add two numbers", function(a, b) a + b, args = list(a = "numeric", b = "numeric"))

same("a tool has its properties", identical(list(add@name, add@description, add@fn(1, 2), add@args),
                                            list("add", "Add two numbers", 3, list(a = "numeric", b = "numeric"))))
same("a tool is of the class securer_tool", inherits(add, "securer_tool"))
same("securer_tool_class() makes one too", {
  t <- securer_tool_class(name = "t", description = "d", fn = function() 1, args = list())
  inherits(t, "securer_tool") && t@name == "t"
})
differs("tools and S7", "an S7 class", isS4(add))
same("format() of a tool", identical(format(add), "<securer_tool>\n  Name: add\n  Description: Add two numbers\n  Args: 2 args"))
same("print() of a tool", identical(capture.output(print(add))[1:2], c("<securer_tool>", "  Name: add")))
same("a long description is cut", grepl("Description: d{57}[.]{3}\n", format(securer_tool("t", strrep("d", 100), identity))))
same("no name", fails(securer_tool("", "desc", identity), "valid R identifier"))
same("a number as name", fails(securer_tool(123, "desc", identity)))
same("no function", fails(securer_tool("name", "desc", "not a function")))
same("args that are no list", fails(securer_tool("name", "desc", identity, args = "numeric")))
for (bad in c("x; system(\"whoami\"); y", "my tool", "1tool", "tool$name", "tool\"name", "_x", "a-b")) {
  same(paste("not a name:", bad), fails(securer_tool(bad, "desc", identity), paste0("Tool name must be a valid R identifier, not \"", bad, "\"")))
}
for (good in c("my_tool", "tool.name", "myTool2", ".hidden")) same(paste("a name:", good), inherits(securer_tool(good, "desc", identity), "securer_tool"))
for (bad in c("x; system(\"whoami\")", "my arg")) {
  same(paste("not a name of an argument:", bad), fails(securer_tool("t", "desc", identity, args = setNames(list("numeric"), bad)), "valid R identifier"))
}
same("names of arguments", inherits(securer_tool("t", "", identity, args = list(x = "numeric", y_2 = "character", .z = "logical")), "securer_tool"))
same("the same name twice", fails(SecureSession$new(tools = list(add, add)), "Duplicate tool names: \"add\""))
same("something else as a tool", fails(SecureSession$new(tools = list(5)), "Each tool must be created with securer_tool()"))

section <- "tools/list"
same("none is an empty list", with_session(function(s) identical(s$tools(), list())))
same("names and arguments", with_session(function(s) {
  identical(s$tools(), list(add = list(name = "add", args = list(a = "numeric", b = "numeric")), ping = list(name = "ping", args = list())))
}, tools = list(add, securer_tool("ping", "", function() "pong"))))
same("format() counts them", with_session(function(s) grepl("tools=1", format(s)), tools = list(add)))

section <- "tools/calls"
weather <- securer_tool("get_weather", "", function(city) list(temp = 72, city = city), args = list(city = "character"))
data <- securer_tool("get_data", "", function(key) switch(key, a = 10, b = 20, 0), args = list(key = "character"))
greet <- securer_tool("greet", "", function(name, times) paste(rep(name, times), collapse = " "), args = list(name = "character", times = "numeric"))
flexible <- securer_tool("flexible", "", function(a, b) paste(a, b), args = list(a = "character", b = NULL))
bad <- securer_tool("bad", "", function() stop("tool failed"))
ping <- securer_tool("ping", "", function() "pong", args = list())
dotted <- securer_tool("my.tool_v2", "", function() 42, args = list())
tooled <- SecureSession$new(tools = list(add, securer_tool("multiply", "", function(a, b) a * b, args = list(a = "numeric", b = "numeric")),
                                         weather, data, greet, flexible, bad, ping, dotted))
call <- function(code, ...) tooled$execute(code, ...)

same("code calls a tool", identical(call("add(2, 3)"), 5))
same("by the names of its arguments", identical(call("add(b = 1, a = 10)"), 11))
same("several tools", identical(call("x <- add(2, 3)\ny <- multiply(x, 4)\ny"), 20))
same("in the middle of R code", identical(unname(call("sum(vapply(c('a', 'b', 'c'), get_data, numeric(1)))")), 30))
same("a list as its value", identical(call("get_weather('Bern')"), list(temp = 72, city = "Bern")))
same("a name with a dot and a figure", identical(call("my.tool_v2()"), 42))
same("no arguments", identical(call("ping()"), "pong"))
same("by its name as a text", identical(call(".securer_call_tool('add', a = 2, b = 3)"), 5))
same("one after the other by name", identical(call("x <- .securer_call_tool('add', a = 1, b = 2)\n.securer_call_tool('add', a = x, b = 10)"), 13))
same("an error of the tool", fails(call("bad()"), "tool failed"))
same("the code can catch it", identical(call("tryCatch(bad(), error = function(e) 'caught')"), "caught"))
same("the session goes on", identical(call("add(1, 1)"), 2))
same("paths in an error of a tool are hidden", with_session(function(s) fails(s$execute("leak()"), "[path]"),
  tools = list(securer_tool("leak", "", function() stop("cannot open '/home/ann/key'")))))

section <- "tools/checks"
same("an unknown tool", fails(call(".securer_call_tool('nonexistent', x = 1)"), "Unknown tool: nonexistent"))
for (name in c("x; system('id')", "123bad", "../../etc/passwd", "")) {
  same(paste("an invalid name is not repeated:", name), fails(call(sprintf(".securer_call_tool(%s)", deparse(name))), "Unknown tool: <invalid>"))
}
same("an argument too many", fails(call(".securer_call_tool('add', a = 1, b = 2, evil = 999)"), "Unexpected arguments for tool 'add': 'evil'"))
same("an argument for a tool without any", fails(call(".securer_call_tool('ping', evil = 999)"), "Unexpected arguments for tool 'ping': 'evil'"))
same("two of them", fails(call(".securer_call_tool('ping', x = 1, y = 2)"), "Unexpected arguments for tool 'ping': 'x', 'y'"))
same("the function refuses it too", fails(call("ping(1)"), "unused argument"))
same("the right types", identical(call("greet('hi', 3)"), "hi hi hi"))
same("a wrong type", fails(call("add('hello', 3)"), "Tool 'add': argument 'a' must be numeric, got character"))
same("the first argument is wrong", fails(call("greet(123, 3)"), "Tool 'greet': argument 'name' must be character"))
same("the second argument is wrong", fails(call("greet('hi', 'three')"), "Tool 'greet': argument 'times' must be numeric"))
same("a type that is not given is not checked", identical(call("flexible('hello', 42)"), "hello 42"))
differs("types where code avoids the function", "types of arguments are checked in the child only",
        fails(call(".securer_call_tool('add', a = 'x', b = 3)"), "must be numeric"))
samples <- list(numeric = "1.5", character = "'a'", logical = "TRUE", integer = "1L", list = "list(1, 'a')", data.frame = "data.frame(x = 1:2)")
typed <- SecureSession$new(tools = c(lapply(names(samples), function(t) securer_tool(paste0("take.", t), "", function(v) "taken", list(v = t))),
                                     list(securer_tool("take.any", "", function(v) "taken", list(v = "foobar")),
                                          securer_tool("take.empty", "", function(v) "taken", list(v = "")))))
for (t in names(samples)) {
  same(paste("type", t, "takes its own"), identical(typed$execute(sprintf("take.%s(%s)", t, samples[[t]])), "taken"))
  same(paste("type", t, "refuses others"), fails(typed$execute(sprintf("take.%s(%s)", t, if (t == "character") "5" else "'x'")), paste("must be", t)))
}
same("an unknown type is not checked", identical(typed$execute("take.any(5)"), "taken"))
same("an empty type is not checked", identical(typed$execute("take.empty('x')"), "taken"))
typed$close()

section <- "tools/protection"
same("a tool cannot be replaced", fails(call("add <- function(...) 'hijacked'"), "cannot change value of locked binding"))
same("nor with assign()", fails(call("assign('add', 1, envir = globalenv())"), "cannot change value of locked binding"))
same("nor .securer_call_tool", fails(call(".securer_call_tool <- function(...) 'hijacked'"), "cannot change value of locked binding"))
same("it works as before", identical(call("add(10, 20)"), 30))
for (name in c(".securer_env", ".securer_connect")) same(paste(name, "does not exist"), identical(call(sprintf("exists('%s', envir = globalenv())", name)), FALSE))
same(".securer_call_tool has an environment of its own", isTRUE(call("!identical(environment(.securer_call_tool), globalenv())")))

section <- "tools/counts"
counter <- "ping(); ping(); ping()"
same("max_tool_calls", fails(call(counter, max_tool_calls = 2), "Maximum tool calls (2) exceeded"))
same("exactly as many", identical(call("ping(); ping()", max_tool_calls = 2), "pong"))
same("no limit", identical(call(counter, max_tool_calls = NULL), "pong"))
same("the session goes on after too many", identical(call("ping()"), "pong"))
differs("1500 calls without a limit", "at most 1000 messages", identical(call("for (i in 1:1500) ping(); 'done'"), "done"))
differs("a message of more than 1 MiB", "texts about the protocol", fails(call("greet(strrep('x', 2e6), 1)"), "more than 1048576 bytes"))
tooled$close()

section <- "tools/legacy"
legacy <- NULL
same("a named list of functions is deprecated", warns(legacy <<- SecureSession$new(tools = list(add = function(a, b) a + b)), "deprecated"))
same("it can be called", identical(legacy$execute(".securer_call_tool('add', a = 10, b = 5)"), 15))
same("its arguments are not listed", length(legacy$tools()) == 1L && legacy$tools()[[1]]$name == "add" && is.null(legacy$tools()[[1]]$args))
differs("functions for them in the session", "a named list of functions", identical(legacy$execute("add(1, 2)"), 3))
legacy$close()
for (bad_name in c("x; system(\"id\")", "../../etc", "1bad")) {
  same(paste("a name that is none:", bad_name),
       fails(suppressWarnings(SecureSession$new(tools = setNames(list(identity), bad_name))), "valid R identifier"))
}
same("an error in one", fails(suppressWarnings(execute_r(".securer_call_tool('bad')", tools = list(bad = function() stop("tool failed")))), "tool failed"))

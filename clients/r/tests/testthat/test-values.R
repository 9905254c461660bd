# Values of R in, out and through a tool: each must come back as identical() sees it.
PROBES <- c(
  # plain
  "NULL", "TRUE", "NA", "1L", "NA_integer_", "1.5", "NA_real_", "NaN", "-Inf", "-0", "5e-324", "'é😀'", "NA_character_", "''",
  "1+2i", "NA_complex_", "complex(real = NA, imaginary = 1)", "complex(real = 1, imaginary = NaN)", "as.raw(0:255)",
  "logical()", "integer()", "double()", "character()", "complex()", "raw()", "list()", "c(TRUE, NA)", "c(1L, NA)", "c(0.1, NA, NaN, Inf, -0)",
  "c('a', NA, '')", "c(1i, NA)", "1e22", "2^53 + 2",
  # attributes
  "c(a = 1, b = 2)", "c(a = 1L)", "c(a = 'x', 'y')", "structure(1:3, note = 'n')", "structure(1.5, a = list(b = 2, c = NULL), d = as.raw(1))",
  "structure(TRUE, x = 1)", "structure('a', comment = 'c')", "structure(as.raw(1:2), names = c('a', 'b'))", "structure(as.raw(1:4), dim = c(2L, 2L))",
  "structure(1:2, names = c(NA, 'b'))", "structure(1, '$' = 2)", "structure(list(1, 2), names = c('a', NA))", "structure(1:3, class = 'mine', extra = quote(f(x)))",
  # lists
  "list(1, 'a', NULL)", "list(a = NULL, b = list())", "setNames(list(), character())", "list(1, a = 2, 3)", "list(a = 1, a = 2)", "list('$' = 1)",
  "pairlist(a = 1, 2)", "as.pairlist(list(x = 1L))", "formals(function(x, y = 2, ...) 1)",
  # matrices and arrays
  "matrix(1:6, 2)", "matrix(c(1L, NA, 3L, 4L), 2)", "matrix(c(TRUE, NA, FALSE, TRUE), 2)", "matrix(c('a', NA, 'c', 'd'), 2)", "matrix(1:4 / 3, 2, dimnames = list(c('a', 'b'), NULL))",
  "array(1:24, 2:4)", "array(1:3, 3)", "array(1:3, 3, list(x = c('a', 'b', 'c')))", "matrix(list(1, 'a', NULL, TRUE), 2)", "matrix(numeric(), 0, 3)", "matrix(c(1i, NA), 1)",
  "matrix(c('a', 'b'), 1, dimnames = list('r', c('x', 'y')))", "matrix(1:4, 2, dimnames = list(p = c('a', 'b'), q = c('c', 'd')))",
  # tables and the like
  "table(c('a', 'b', 'a'))", "table(mtcars$cyl, mtcars$gear)", "table(x = c(1, 2, 1))", "prop.table(table(c('a', 'b', 'a')))", "tapply(mtcars$mpg, mtcars$cyl, mean)",
  "tapply(mtcars$mpg, list(mtcars$cyl, mtcars$gear), mean)", "by(warpbreaks[, 1:2], warpbreaks[, 'tension'], summary)", "xtabs(~ cyl + gear, mtcars)",
  "aggregate(mpg ~ cyl, mtcars, mean)", "sapply(split(mtcars$mpg, mtcars$cyl), range)", "quantile(1:10)", "summary(c(1.5, 2, 10))", "summary(mtcars$mpg > 20)",
  "summary(data.frame(a = 1:3, b = letters[1:3]))", "ftable(Titanic, row.vars = 1:2)", "rle(c(1, 1, 2))", "cut(1:5, 2)", "density(c(1, 2, 4))$x",
  # factors, dates, times
  "factor(c('a', 'b', NA, 'a'))", "factor(c('lo', 'hi'), levels = c('lo', 'hi'), ordered = TRUE)", "addNA(factor(c('a', NA)))", "factor(character())",
  "setNames(factor(c('x', 'y')), c('p', 'q'))", "structure(factor('a'), contrasts = 'contr.sum')", "as.Date('2024-02-29')", "as.Date(c(NA, '1969-12-31'))", "structure(19000L, class = 'Date')",
  "structure(1.5, class = 'Date')", "structure(c(Inf, NaN), class = 'Date')", "setNames(as.Date('2024-01-01') + 0:1, c('a', 'b'))",
  "as.POSIXct('2024-07-01 12:00:00', tz = 'UTC')", "as.POSIXct('2024-07-01 12:00:00', tz = 'Europe/Paris')", "structure(1719835200.123456789, class = c('POSIXct', 'POSIXt'))",
  "as.POSIXct('2024-07-01 12:00:00')", "as.POSIXct(NA, tz = 'America/New_York')", "structure(c(0.1, -0.1, 1e-7, NA, Inf), class = c('POSIXct', 'POSIXt'), tzone = '')",
  "structure(1L, class = c('POSIXct', 'POSIXt'), tzone = 'UTC')", "as.POSIXlt('2024-07-01 12:34:56.789', tz = 'UTC')", "as.POSIXlt(c('2024-07-01', NA), tz = 'Europe/Berlin')",
  "as.difftime(90, units = 'mins')", "as.difftime(c(0.1, NA, 1 / 3), units = 'weeks')", "structure(5L, class = 'difftime', units = 'days')", "as.POSIXct(10, origin = '1970-01-01', tz = 'UTC') - as.POSIXct(3, origin = '1970-01-01', tz = 'UTC')",
  "as.difftime(NA_real_, units = 'hours')", "ISOdate(2024, 1, 1)", "ts(1:24, start = c(2020, 3), frequency = 12)", "ts(matrix(1:6, 3), names = c('a', 'b'))", "noquote('x')", "I('x')", "I(list(1, 2))", "as.octmode(8L)", "numeric_version('1.2.3')", "as.roman(4)", "object.size(1)",
  # data frames
  "data.frame()", "data.frame(a = 1:2, b = c('x', NA))", "mtcars[1:2, ]", "mtcars[0, ]", "data.frame(a = 1:4)[c(2, 4), , drop = FALSE]", "data.frame(row.names = c('a', 'b'))",
  "data.frame(f = factor(c('u', 'v')), d = as.Date('2024-01-01') + 0:1, t = as.POSIXct(c(0, 1.5), origin = '1970-01-01', tz = 'Asia/Tokyo'))", "data.frame(l = I(list(1:2, 'a')))",
  "local({ d <- data.frame(a = 1:2); d$m <- matrix(1:4, 2); d })", "local({ d <- data.frame(a = 1:2); d$d <- data.frame(x = 3:4, y = c('p', 'q')); d })", "local({ d <- data.frame(a = 1:2); d$l <- list(NULL, quote(x)); d })",
  "structure(data.frame(a = 1), note = 'n')", "structure(list(a = 1:2), class = c('tbl_df', 'tbl', 'data.frame'), row.names = c(NA, -2L))", "data.frame(check.names = FALSE, a = 1, a = 2)",
  "data.frame(z = c(1i, NA), r = as.raw(1:2))", "expand.grid(a = 1:2, b = c('x', 'y'))", "iris[c(1, 51, 101), ]", "data.frame(t = as.POSIXlt('2024-01-01', tz = 'UTC'))", "list(data.frame(a = 1), list(data.frame(b = 2)))",
  # language
  "quote(x)", "quote(f(x, y = 2, ...))", "quote(x[, 1])", "quote(function(a, b = 1) { a + b })", "y ~ x + log(z)", "~ a", "y ~ .", "terms(y ~ x * z)", "expression(a, b + 1, 2)", "expression(n = sin(x))",
  "quote(stop('no'))", "quote(`my var` + 1)", "as.call(list(quote(f), 1:3, list(a = quote(b))))", "quote(if (a) b else c)", "Reduce(function(a, b) call('+', a, b), lapply(sprintf('v%d', 1:200), as.name))",
  # models and other S3 lists
  "lm(mpg ~ wt, mtcars)", "summary(lm(mpg ~ wt, mtcars))", "coef(summary(lm(mpg ~ wt + factor(cyl), mtcars)))", "anova(lm(mpg ~ wt, mtcars))", "t.test(extra ~ group, sleep)", "t.test(1:10)",
  "chisq.test(matrix(c(12, 5, 7, 9), 2))", "glm(am ~ wt, data = mtcars)$coefficients", "prcomp(mtcars[, 1:3])", "hclust(dist(1:4))", "kmeans(matrix(c(1, 2, 9, 10), 4), matrix(c(1, 10), 2))$centers",
  "TukeyHSD(aov(len ~ factor(dose), ToothGrowth))", "structure(list(a = 1, b = 'x'), class = c('sub', 'base'))", "structure(list(), class = 'empty')", "simpleError('no')", "as.person('A B <a@b.c>')",
  # S4
  "{ setClass('P', representation(x = 'numeric', y = 'list', z = 'ANY')); new('P', x = 1:2 / 2, y = list(a = 1), z = NULL) }",
  "{ setClass('N', contains = 'numeric', representation(unit = 'character')); new('N', 1:3 / 2, unit = 'm') }",
  # encodings
  "local({ x <- '\\xe9'; Encoding(x) <- 'latin1'; x })", "local({ x <- c('a', '\\xff\\xfe'); Encoding(x) <- 'bytes'; x })", "c('\\xff', 'b')", "'\\u00e9'"
)
PACKAGES <- c(bit64 = "bit64::as.integer64(c('9007199254740993', NA, '-5'))", bit64 = "bit64::as.integer64('9223372036854775807')", bit64 = "bit64::NA_integer64_",
              bit64 = "data.frame(i = bit64::as.integer64(1:2))", Matrix = "Matrix::Matrix(c(0, 1, 2, 0), 2, sparse = TRUE)", tibble = "tibble::tibble(a = 1:2, l = list(1, 'x'))")
SLOW <- list(timeout_ms = 280000) # the guest loads these packages on a busy machine
probes <- function() c(PROBES, PACKAGES[vapply(names(PACKAGES), requireNamespace, NA, quietly = TRUE)])

here <- function(code) eval(parse(text = code, keep.source = FALSE), globalenv())

test_that("values come out of the guest as they are", {
  needs_program()
  s <- SecureSession$new(policy = SLOW)
  on.exit(s$close())
  for (code in probes()) {
    want <- here(code)
    r <- s$evaluate(code)
    expect_true(r$success, info = paste(code, r$error))
    expect_true(identical(r$value, want), info = paste(code, "came as", paste(deparse(r$value), collapse = " ")))
  }
})

test_that("values go into the guest as they are", {
  needs_program()
  s <- SecureSession$new(tools = TOOLS["echo"], policy = SLOW)
  on.exit(s$close())
  for (code in probes()) {
    x <- here(code)
    s$evaluate(code) # defines what it needs
    again <- sprintf("eval(parse(text = %s, keep.source = FALSE))", deparse(code, width.cutoff = 500L))
    r <- s$evaluate(sprintf("identical(x, %s)", again), list(x = x))
    expect_true(isTRUE(r$value), info = paste(code, r$error))
    r <- s$evaluate(sprintf("identical(echo(%s), %s)", again, again))
    expect_true(isTRUE(r$value), info = paste("through a tool:", code, r$error))
  }
})

test_that("what was printed goes with any value", {
  needs_program()
  s <- SecureSession$new(policy = SLOW)
  on.exit(s$close())
  expect_identical(s$execute("cat('hi\\n'); quote(x)"), quote(x))
  expect_identical(s$execute("cat('hi\\n'); quote(x + y)"), structure(quote(x + y), output = "hi"))
  expect_identical(attr(s$execute("cat('hi\\n'); table(1:2)"), "output"), "hi")
  expect_null(s$execute("quote(expr = )"))
  expect_match(paste(capture.output(print(s$evaluate("lm(mpg ~ wt, mtcars)"))), collapse = " "), "success")
  expect_identical(capture.output(print(s$execute("lm(mpg ~ wt, mtcars)"))), capture.output(print(lm(mpg ~ wt, mtcars))))
})

test_that("functions, environments and connections come as handles", {
  needs_program()
  s <- SecureSession$new(tools = TOOLS["echo"], policy = SLOW)
  on.exit(s$close())
  f <- s$evaluate("f <- function(x) x + n; n <- 1; f")$value
  expect_identical(capture.output(print(f)), "function(x) x + n")
  expect_identical(attr(f, "type"), "function")
  expect_identical(s$evaluate("list(g(2), identical(g, f))", list(g = f))$value, list(3, TRUE))
  expect_identical(s$evaluate("f")$value, f) # one object, one handle
  e <- s$evaluate("e <- new.env(); e$v <- 7; list(e, 'x')")$value[[1]]
  expect_match(format(e), "^<environment: 0x[0-9a-f]+>$")
  expect_identical(s$evaluate("rm(e); invisible(gc()); h$a$v", list(h = list(a = e)))$value, 7)
  expect_true(s$evaluate("identical(echo(f), f)")$value)
  con <- s$evaluate("con <- textConnection('line'); con")$value
  expect_identical(s$evaluate("readLines(c)", list(c = con))$value, "line")
  expect_identical(s$evaluate("sum")$value[1], 'function (..., na.rm = FALSE)  .Primitive("sum")')
  # A formula of a function keeps the function's environment.
  g <- s$evaluate("(function(a) y ~ a)(5)")$value
  expect_s3_class(environment(g), "cordon_handle")
  expect_identical(s$evaluate("environment(g)$a", list(g = g))$value, 5)
  s$restart()
  r <- s$evaluate("1", list(g = f))
  expect_false(r$success)
  expect_match(r$error, "restarted, or is another one")
})

# ---- what a hostile guest could send

received <- function(text) .Call(cordon:::C_value_decode, text)
attr_form <- function(v, ...) received(sprintf('{"$":"attr","v":%s,"attr":[%s]}', v, paste(..., sep = ",")))

test_that("attributes that do not fit are left out", {
  for (a in c('["names",{"$":"vec","t":"string","v":["a"]}]', '["dim",{"$":"vec","t":"int","v":[2,2]}]', '["dim",{"$":"vec","t":"int","v":[-1,-3]}]', '["dim",null]',
              '["dimnames",[["a"]]]', '["tsp",{"$":"vec","t":"float","v":[1.0,2.0,0.0]}]', '["row.names","a"]', '["comment",5]', '["srcref",1]', '["",1]', '[5,1]', '["x"]', '{}', '"names"')) {
    expect_identical(attr_form('{"$":"vec","t":"int","v":[1,2,3]}', a), 1:3, info = a)
  }
  expect_identical(attr_form("null", '["a",1]'), NULL)
  expect_identical(attr_form('{"$":"lang","v":["x"],"text":"x"}', '["a",1]'), quote(x))
  expect_identical(attr_form("true", '["a",1]'), structure(TRUE, a = 1L))
  expect_null(attributes(TRUE)) # R has one TRUE
})

test_that("an object that is not what its class says has no class", {
  plain <- function(x, class) {
    expect_null(oldClass(x))
    expect_identical(attr(x, "guest_class"), class)
    capture.output(print(x))
  }
  ints <- '{"$":"vec","t":"int","v":[1,2,3]}'
  plain(attr_form(ints, '["levels",{"$":"vec","t":"string","v":["a","b"]}]', '["class","factor"]'), "factor")
  plain(attr_form(ints, '["levels",{"$":"vec","t":"string","v":["a","a","b"]}]', '["class","factor"]'), "factor")
  plain(attr_form(ints, '["levels",{"$":"vec","t":"int","v":[1,2,3]}]', '["class","factor"]'), "factor")
  plain(attr_form('"x"', '["class","factor"]'), "factor")
  plain(attr_form('{"a":1}', '["class","data.frame"]'), "data.frame")
  plain(attr_form('{"a":1,"b":[1,2]}', '["row.names",{"$":"vec","t":"int","v":[1,2]}]', '["class","data.frame"]'), "data.frame")
  plain(attr_form("1.0", '["tzone",5]', '["class",{"$":"vec","t":"string","v":["POSIXct","POSIXt"]}]'), c("POSIXct", "POSIXt"))
  plain(attr_form('"x"', '["class","Date"]'), "Date")
  plain(attr_form("1.0", '["units","years"]', '["class","difftime"]'), "difftime")
  plain(attr_form("1.0", '["class","ts"]'), "ts")
  plain(attr_form("1", '["class","integer64"]'), "integer64")
  plain(attr_form('{"sec":1.0}', '["class",{"$":"vec","t":"string","v":["POSIXlt","POSIXt"]}]'), c("POSIXlt", "POSIXt"))
  plain(attr_form('"x"', '["class","formula"]'), "formula")
  expect_identical(received('{"$":"factor","levels":["a"],"v":[2,null],"ordered":false}'), structure(c(2L, NA), levels = "a"))
  expect_identical(received('{"$":"frame","names":["a","b"],"columns":[{"$":"vec","t":"int","v":[1,2]},{"$":"vec","t":"int","v":[1]}],"rows":2}'), list(a = 1:2, b = 1L))
})

test_that("classes whose methods act on what they print are not given", {
  for (class in c("trellis", "recordedplot", "bibentry", "srcref", "connection", "ls_str", "json_text", "securer_tool", "cordon_handle", "NativeSymbolInfo")) {
    x <- attr_form('{"a":1}', sprintf('["class",{"$":"vec","t":"string","v":["x","%s"]}]', class))
    expect_identical(x, structure(list(a = 1L), guest_class = c("x", class)))
  }
})

test_that("language is built and never evaluated", {
  bomb <- '{"$":"lang","v":[{"call":2},"stop",{"value":"evaluated"}],"text":"stop()"}'
  expect_identical(received(bomb), quote(stop("evaluated")))
  s <- securer_tool("t", "", function(v) class(v), list(v = NULL))
  needs_program()
  with <- SecureSession$new(tools = list(s))
  on.exit(with$close())
  expect_identical(with$evaluate("t(quote(stop('evaluated')))")$value, "call")
  # A formula that only computes has the workspace as its environment, another one has none.
  expect_identical(environment(with$evaluate("y ~ log(x)")$value), globalenv())
  expect_identical(environment(with$evaluate("y ~ system(x)")$value), emptyenv())
  expect_identical(environment(with$evaluate("f <- y ~ x; attr(f, 'predvars') <- quote(list(system('x'))); f")$value), emptyenv())
  # Not well-formed: its text.
  for (v in c("[]", '[{"call":3},"f"]', '[{"call":0}]', '[{"call":-1},"f"]', '[{"call":1e9},"f"]', '[{"pairs":2},"a"]', "{}", "5", strrep("a", 5))) {
    expect_identical(received(sprintf('{"$":"lang","v":%s,"text":"t"}', if (startsWith(v, "a")) paste0('["', strrep("a", 20000), '"]') else v)), "t")
  }
  deep <- paste(rep('{"call":2},"f"', 5000), collapse = ",")
  expect_identical(received(sprintf('{"$":"lang","v":[%s,"x"],"text":"deep"}', deep)), "deep")
})

test_that("S4 objects of a package must be valid", {
  skip_if_not_installed("Matrix")
  bad <- '{"$":"s4","class":{"$":"attr","v":"dgCMatrix","attr":[["package","Matrix"]]},"slots":[["i",{"$":"vec","t":"int","v":[0,99999999]}],["p",{"$":"vec","t":"int","v":[0,1,2]}],["Dim",{"$":"vec","t":"int","v":[2,2]}],["Dimnames",[null,null]],["x",{"$":"vec","t":"float","v":[1.0,2.0]}],["factors",[]]]}'
  loadNamespace("Matrix")
  x <- received(bad)
  expect_type(x, "list")
  expect_identical(as.character(attr(x, "guest_class")), "dgCMatrix")
  expect_type(received(sub('"package","Matrix"', '"package","NoSuch"', bad)), "list")
})

test_that("no change of a message's bytes does harm", {
  forms <- vapply(lapply(c("mtcars[1:3, ]", "lm(mpg ~ wt, mtcars[1:6, ])", "table(1:3)", "ts(1:5)", "as.POSIXlt('2024-01-01', tz = 'UTC')", "factor(c('a', NA))", "y ~ x + z",
                           "matrix(c(1L, NA, 3L, 4L), 2)", "structure(1:4, dim = c(2L, 2L), dimnames = list(a = c('x', 'y'), NULL))", "as.difftime(1:3, units = 'mins')"), here),
                  function(v) .Call(cordon:::C_value_encode, v, cordon:::printed), "")
  words <- c('"attr"', '"v"', '"class"', '"names"', '"dim"', '"levels"', '"call"', '"mode"', '"int64"', '"s4"', "null", "[]", "{}", "-1", "1e300", '"factor"', '"data.frame"', '"POSIXlt"', '"ts"', '"tsp"')
  set.seed(17)
  read <- 0L
  for (i in seq_len(4000L)) {
    text <- forms[[sample.int(length(forms), 1L)]]
    tokens <- regmatches(text, gregexpr('"[^"]*"|[-0-9.e+]+|null|true|false|[][{},:]', text))[[1]]
    for (k in seq_len(sample.int(4L, 1L))) {
      at <- sample.int(length(tokens), 1L)
      other <- switch(sample.int(3L, 1L), sample(words, 1L), sample(tokens, 1L), "7")
      if (!tokens[at] %in% c("[", "]", "{", "}", ",", ":")) tokens[at] <- other
    }
    x <- tryCatch(list(received(paste(tokens, collapse = ""))), error = function(e) conditionMessage(e))
    if (is.list(x)) {
      read <- read + 1L
      x <- x[[1]]
      capture.output(tryCatch(print(x), error = function(e) NULL, warning = function(w) NULL))
      if (is.data.frame(x)) stopifnot(all(vapply(x, NROW, 1L) == nrow(x)))
      if (is.factor(x)) stopifnot(is.character(levels(x)))
    } else expect_identical(x, "not JSON")
  }
  expect_gt(read, 2000L)
})

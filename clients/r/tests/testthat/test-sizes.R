# Large values as binary columns (docs/values.md).
roomy <- list(memory_bytes = 3 * 2^30, timeout_ms = 240000, cpu_seconds = 240)
N <- 20000L

test_that("large values cross exactly", {
  needs_program()
  s <- SecureSession$new(policy = roomy)
  on.exit(s$close())
  back <- function(x) s$evaluate("x", context = list(x = x))$value
  frame <- data.frame(i = seq_len(N), f = seq_len(N) / 3, s = paste0("\u00e4", seq_len(N)), b = rep(c(TRUE, NA), N / 2),
                      d = as.Date("2024-01-01") + seq_len(N), p = as.POSIXct("2024-01-01", tz = "UTC") + seq_len(N),
                      fa = factor(rep(c("x", "y", NA, "z"), N / 4)), n = rep(c(1.5, NA, NaN, Inf), N / 4),
                      z = complex(real = seq_len(N), imaginary = 2), stringsAsFactors = FALSE)
  expect_identical(back(frame), frame)
  expect_identical(back(as.numeric(seq_len(N))), as.numeric(seq_len(N)))
  expect_identical(back(c(NA, seq_len(N))), c(NA, seq_len(N)))
  named <- setNames(as.numeric(seq_len(N)), paste0("n", seq_len(N)))
  expect_identical(back(named), named)
  cube <- array(c(NA, seq_len(60000L - 1L)), c(10, 60, 100))
  expect_identical(back(cube), cube)
  expect_identical(back(as.raw(rep(7, 1e5))), as.raw(rep(7, 1e5)))
  deep <- list(a = 1, b = stats::runif(1e5), c = list(d = letters, e = as.character(seq_len(1e5))), f = list("$buf" = 0L))
  expect_identical(back(deep), deep)
  rows <- data.frame(x = seq_len(N), row.names = paste0("r", seq_len(N)))
  expect_identical(back(rows), rows)
  expect_length(s$execute("rnorm(1e6)"), 1e6)
  expect_identical(s$execute("1 + 1"), 2)
})

test_that("large values cross to Python and Node", {
  needs_program()
  for (guest in c("python", "node")) {
    s <- SecureSession$new(guest = guest, policy = roomy)
    x <- list(v = as.list(seq_len(N) / 4), s = as.raw(rep(3, 1e5)))
    expect_identical(s$evaluate("x", context = list(x = x))$value, x, label = guest)
    s$close()
  }
})

test_that("200 MB go in and coefficients come out", {
  needs_program()
  s <- SecureSession$new(policy = roomy)
  on.exit(s$close())
  df <- as.data.frame(matrix(stats::runif(2.5e7), ncol = 10))
  df$V1 <- 3 + 2 * df$V2 - df$V3
  r <- s$evaluate("x <- cbind(1, as.matrix(df[-1]))\nb <- solve(crossprod(x), crossprod(x, df$V1))
data.frame(term = c('(Intercept)', names(df)[-1]), estimate = as.vector(b))", context = list(df = df))
  expect_identical(r$value$term[1:2], c("(Intercept)", "V2"))
  expect_equal(r$value$estimate, c(3, 2, -1, rep(0, 7)), tolerance = 1e-6)
})

test_that("the limit is named", {
  needs_program()
  s <- SecureSession$new(policy = list(value_bytes = 1e6))
  on.exit(s$close())
  e <- tryCatch(s$evaluate("1", context = list(x = numeric(2e5))), error = identity)
  expect_s3_class(e, "cordon_limit")
  expect_match(conditionMessage(e), "1600000 bytes, max 1000000", fixed = TRUE)
  expect_match(conditionMessage(e), "value_bytes", fixed = TRUE)
  r <- s$evaluate("numeric(2e5)")
  expect_null(r$value)
  expect_match(unlist(r$warnings)[1], "value_bytes", fixed = TRUE)
  expect_length(s$evaluate("numeric(1e5)")$value, 1e5)
})

knit_text <- function(lines) {
  folder <- tempfile("cordon-knitr-")
  dir.create(folder)
  old <- setwd(folder)
  on.exit({ setwd(old); unlink(folder, recursive = TRUE); knitr::knit_engines$restore() })
  writeLines(lines, "page.Rmd")
  knitr::knit("page.Rmd", quiet = TRUE)
  list(text = paste(readLines("page.md"), collapse = "\n"), files = list.files("figure", full.names = FALSE))
}
chunk <- function(code, head = "cordon") c(paste0("```{", head, "}"), code, "```", "")

test_that("chunks run in the session, with its state", {
  needs_program()
  skip_if_not_installed("knitr")
  session <- SecureSession$new()
  on.exit(session$close())
  cordon_knitr_engine(session)
  page <- knit_text(c(chunk("x <- 20\ncat('said\\n')"), chunk("x + 1"), chunk("stop('never')", "cordon, eval=FALSE"), chunk("x <- 5", "cordon, echo=FALSE"),
                      chunk("exists('x')", "r")))
  expect_match(page$text, "x <- 20", fixed = TRUE)
  expect_match(page$text, "said", fixed = TRUE)
  expect_match(page$text, "[1] 21", fixed = TRUE)
  expect_match(page$text, "stop('never')", fixed = TRUE)
  expect_no_match(page$text, "x <- 5", fixed = TRUE)
  expect_equal(session$execute("x"), 5)
})

test_that("an error ends the document, unless the chunk allows it", {
  needs_program()
  skip_if_not_installed("knitr")
  session <- SecureSession$new()
  on.exit(session$close())
  cordon_knitr_engine(session)
  expect_error(knit_text(chunk("stop('broken')", "cordon, label, error=FALSE")), "the chunk 'label' failed.*broken")
  cordon_knitr_engine(session)
  page <- knit_text(chunk("stop('broken')", "cordon, error=TRUE"))
  expect_match(page$text, "Error: .*broken")
})

test_that("denials, plots and languages", {
  needs_program()
  skip_if_not_installed("knitr")
  session <- SecureSession$new(guest = "python", languages = c("python", "r", "sh"))
  on.exit(session$close())
  cordon_knitr_engine(session, "walled")
  page <- knit_text(c(chunk("import socket\nsocket.socket(socket.AF_PACKET)", "walled, error=TRUE"), chunk("echo $((6 * 7))", "walled, language='sh'"),
                      chunk("plot(1:3)", "walled, drawn, language='r'")))
  expect_match(page$text, "denied: socket .*to allow it: ")
  expect_match(page$text, "## 42", fixed = TRUE)
  expect_match(page$text, "drawn-1.png", fixed = TRUE)
  expect_true("drawn-1.png" %in% page$files)
})

test_that("a target cannot write lines of its own", {
  r <- list(denials = list(list(operation = "open", target = "/a\nEvil: x", layer = "files")))
  expect_equal(cordon:::denial_lines(r), "denied: open /a?Evil: x (files); to allow it: none")
})

test_that("what cannot be is refused, and a session is made if none is given", {
  skip_if_not_installed("knitr")
  fails_with("`name` must be", cordon_knitr_engine(name = 7))
  fails_with("`...` are arguments of a new one", cordon_knitr_engine(session = list(), guest = "r"))
  needs_program()
  cordon_knitr_engine(guest = "sh")
  page <- knit_text(chunk("echo $((6 * 7))"))
  expect_match(page$text, "## 42", fixed = TRUE)
})

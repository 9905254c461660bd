test_that("every exported name has a page with usage, arguments, value and examples", {
  db <- tools::Rd_db("cordon")
  tags <- function(rd) sub("^\\\\", "", vapply(rd, function(x) attr(x, "Rd_tag"), ""))
  headings <- function(rd) c(tags(rd), unlist(lapply(rd[tags(rd) == "section"], function(x) tolower(paste(unlist(x[[1]]), collapse = "")))))
  aliases <- lapply(db, function(rd) trimws(vapply(rd[tags(rd) == "alias"], function(x) paste(unlist(x), collapse = ""), "")))
  takes_none <- "default_limits"
  for (name in getNamespaceExports("cordon")) {
    if (name == "show" || grepl("^\\.__", name)) next # of the S4 class, whose page is the tool's
    page <- which(vapply(aliases, function(a) name %in% a, NA))
    expect_length(page, 1)
    expect_true(all(c("title", "description", "usage", if (!name %in% takes_none) "arguments", "value", "examples") %in% headings(db[[page]])),
                label = paste("the page of", name, "is whole"))
  }
})

test_that("the pages of the classes show their calls", {
  db <- tools::Rd_db("cordon")
  for (class in list(SecureSession, SecureSessionPool)) {
    text <- paste(unlist(db[[paste0(class$classname, ".Rd")]]), collapse = "")
    for (method in setdiff(names(class$public_methods), "initialize")) {
      expect_match(text, paste0("$", method, "("), fixed = TRUE)
    }
    for (argument in setdiff(names(formals(class$public_methods$initialize)), "adopt")) expect_match(text, argument, fixed = TRUE)
  }
})

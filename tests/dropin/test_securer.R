# test_securer.R - what securer's own tests and pages expect of it, as expectations of the R client, by the name of what they are
# about. Each holds, or is a difference that a row of the table in clients/r/README.md explains. TAP on stdout.
#
#   CORDON=build/cordon SRC=. Rscript tests/dropin/test_securer.R

source_root <- normalizePath(Sys.getenv("SRC", "."))
stopifnot(nzchar(Sys.getenv("CORDON")))
Sys.setenv(CORDON = normalizePath(Sys.getenv("CORDON")))
# What a session must not see. The server has the environment of this process.
Sys.setenv(SECURER_TEST_SECRET = "leaked", R_LIBS = "/tmp/not-ours", R_LIBS_USER = "/tmp/not-ours-either")

# --vanilla reads no Renviron, which is where Debian keeps its library directories.
.libPaths(c("/usr/local/lib/R/site-library", "/usr/lib/R/site-library", .libPaths()))

# ---- the report

report <- new.env()
report$lines <- 0L
report$counts <- c(same = 0L, different = 0L, page = 0L, failed = 0L)
report$used <- character()
readme <- readLines(file.path(source_root, "clients", "r", "README.md"))
rows <- grep("^\\| .* \\|$", readme, value = TRUE)

note <- function(text) writeLines(paste0("# ", unlist(strsplit(text, "\n"))))

verdict <- function(kind, name, expr, mark = "") {
  why <- tryCatch(if (isTRUE(expr)) "" else "not TRUE", error = function(e) paste("error:", conditionMessage(e)))
  report$lines <- report$lines + 1L
  if (nzchar(why)) kind <- "failed"
  report$counts[[kind]] <- report$counts[[kind]] + 1L
  cat(if (nzchar(why)) "not ok " else "ok ", report$lines, " - securer/", name, mark, "\n", sep = "")
  if (nzchar(why)) note(why)
}

# The expression is TRUE, as in securer.
same <- function(name, expr) verdict("same", paste(section, name, sep = "/"), expr)

# As same(), where a package is installed.
same_with <- function(package, name, expr) {
  if (requireNamespace(package, quietly = TRUE) || Sys.getenv("CORDON_NEEDS") == "strict") return(same(name, expr))
  report$lines <- report$lines + 1L
  cat("ok ", report$lines, " - securer/", section, "/", name, " # SKIP the package ", package, " is missing\n", sep = "")
}

# In securer it is otherwise. The row of the README that begins with these words says so, and the expression is TRUE here.
differs <- function(name, row, expr) {
  found <- startsWith(rows, paste0("| ", row))
  report$used <- c(report$used, row)
  verdict("different", paste(section, name, sep = "/"), {
    if (sum(found) != 1L) stop("clients/r/README.md has no row that begins with '", row, "'")
    expr
  }, paste0(" (different: ", row, ")"))
}

# Whether it fails, with an error that contains the text.
fails <- function(expr, text = "") {
  said <- tryCatch({
    expr
    NULL
  }, error = conditionMessage)
  if (is.null(said)) stop("no error")
  if (!grepl(text, said, fixed = TRUE)) stop("another error: ", said)
  TRUE
}

warns <- function(expr, text) {
  said <- character()
  withCallingHandlers(try(expr, silent = TRUE), warning = function(w) {
    said <<- c(said, conditionMessage(w))
    invokeRestart("muffleWarning")
  })
  any(grepl(text, said, fixed = TRUE))
}

messages_of <- function(expr) {
  said <- character()
  withCallingHandlers(expr, message = function(m) {
    said <<- c(said, conditionMessage(m))
    invokeRestart("muffleMessage")
  })
  said
}

says <- function(expr, text) any(grepl(text, messages_of(expr), fixed = TRUE))
quiet <- function(expr) length(messages_of(expr)) == 0L
plain <- function(x) {
  attr(x, "output") <- NULL
  x
}

# Calls fn with a new session, and closes it.
with_session <- function(fn, ...) {
  s <- SecureSession$new(...)
  on.exit(s$close())
  fn(s)
}
with_pool <- function(fn, ...) {
  p <- SecureSessionPool$new(...)
  on.exit(p$close())
  fn(p)
}

# ---- the package, from a plain copy of its folder

scratch <- tempfile("securer-")
library_folder <- file.path(scratch, "lib")
dir.create(library_folder, recursive = TRUE)

install <- function(folder) {
  log <- file.path(scratch, "install.log")
  status <- system2(file.path(R.home("bin"), "R"), c("CMD", "INSTALL", "--no-docs", "--no-test-load", "-l", library_folder, folder),
                    stdout = log, stderr = log)
  if (status != 0L) stop(paste(readLines(log), collapse = "\n"))
  TRUE
}

# The three functions of ellmer that are used, as a package of that name: what they get is what counts.
make_ellmer <- function() {
  package <- file.path(scratch, "ellmer")
  dir.create(file.path(package, "R"), recursive = TRUE)
  writeLines(c("Package: ellmer", "Version: 0.3.0", "Title: T", "Description: D.", "License: GPL-2", "Author: A",
               "Maintainer: A <a@example.org>"), file.path(package, "DESCRIPTION"))
  writeLines("export(tool, type_string, ContentToolResult)", file.path(package, "NAMESPACE"))
  writeLines(c("tool <- function(fun, description, ..., arguments = list(), name = NULL)",
               "  structure(fun, description = description, arguments = arguments, name = name)",
               "type_string <- function(description = NULL, required = TRUE) list(type = 'string', description = description)",
               "ContentToolResult <- function(value = NULL, error = NULL) list(value = value, error = error)"),
             file.path(package, "R", "all.R"))
  install(package)
}

section <- "package"
same("a plain copy of the folder can be installed", {
  system2("cp", c("-a", file.path(source_root, "clients", "r"), file.path(scratch, "cordon")))
  install(file.path(scratch, "cordon"))
})
.libPaths(c(library_folder, .libPaths()))
library(cordon, lib.loc = library_folder)

for (part in c("names", "session", "tools", "validate", "pool", "audit", "helpers", "wall")) {
  sys.source(file.path(source_root, "tests", "dropin", "securer", paste0(part, ".R")), envir = environment())
}

# ---- the end

# Each row of the table is about something that is tested here.
table <- readme[seq(which(readme == "| securer | here |") + 2L, length(readme))]
table <- table[seq_len(which(!startsWith(table, "|"))[1] - 1L)]
for (row in table) {
  begin <- sub("^\\| ", "", row)
  verdict("page", paste("readme/is tested:", substr(begin, 1L, 50L)), any(startsWith(begin, unique(report$used))))
}

unlink(scratch, recursive = TRUE)
cat("1..", report$lines, "\n", sep = "")
note(sprintf("securer: %d expectations: %d as in securer, %d different on purpose (clients/r/README.md), %d fail",
             sum(report$counts) - report$counts[["page"]], report$counts[["same"]], report$counts[["different"]], report$counts[["failed"]]))
quit(status = if (report$counts[["failed"]] > 0L) 1L else 0L)

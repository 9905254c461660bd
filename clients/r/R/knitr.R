# Chunks of a knitr document in a sandbox.

# What the sandbox refused, with the change of the policy that would allow it: a line each.
denial_lines <- function(r) {
  vapply(r$denials, function(d) {
    what <- paste(c(d$operation, d$target), collapse = " ")
    what <- gsub("[[:cntrl:]]", "?", what) # a target is the code's own text
    paste0("denied: ", what, " (", if (is.null(d$layer)) "?" else d$layer, "); to allow it: ", if (is.null(d$remedy)) "none" else d$remedy)
  }, "")
}

# The parts of a result in the order of a console: output, value, what went wrong.
chunk_text <- function(r) {
  parts <- c(r$stdout, r$result_text, r$stderr, if (!isTRUE(r$success)) paste0("Error: ", r$error), denial_lines(r))
  parts <- sub("\n+$", "", parts)
  paste(parts[nzchar(parts)], collapse = "\n")
}

# Not SVG: in a document that carries its images, a browser would run the scripts in it.
IMAGES <- c("image/png" = "png", "image/jpeg" = "jpeg")

# Writes the images where knitr keeps its figures; their paths.
chunk_images <- function(r, options) {
  shown <- Filter(function(o) o$mime %in% names(IMAGES), r$outputs)
  vapply(seq_along(shown), function(i) {
    path <- knitr::fig_path(IMAGES[[shown[[i]]$mime]], options, i)
    dir.create(dirname(path), recursive = TRUE, showWarnings = FALSE)
    data <- shown[[i]]$data
    writeBin(if (is.raw(data)) data else charToRaw(data), path)
    path
  }, "")
}

cordon_knitr_engine <- function(session = NULL, name = "cordon", ...) {
  if (!requireNamespace("knitr", quietly = TRUE)) {
    stop("Package 'knitr' is required for cordon_knitr_engine(). Install it with: install.packages(\"knitr\")", call. = FALSE)
  }
  if (!is_string(name) || !nzchar(name)) stop("`name` must be a single character string", call. = FALSE)
  if (!is.null(session) && length(list(...)) > 0) stop("`session` is there: `...` are arguments of a new one", call. = FALSE)
  engine <- function(options) {
    code <- paste(options$code, collapse = "\n")
    if (isFALSE(options$eval)) return(knitr::engine_output(options, options$code, ""))
    if (is.null(session)) session <<- SecureSession$new(...)
    r <- if (is.null(options$language)) session$evaluate(code) else session$run(code, options$language)
    text <- chunk_text(r)
    # As in knitr's own chunks: an error ends the document, unless the chunk says error = TRUE.
    if (!isTRUE(r$success) && !isTRUE(options$error)) stop("the chunk '", options$label, "' failed:\n", text, call. = FALSE)
    images <- chunk_images(r, options)
    parts <- list(structure(list(src = options$code), class = "source"), if (nzchar(text)) paste0(text, "\n"),
                  if (length(images) > 0) knitr::include_graphics(images))
    knitr::engine_output(options, out = parts[lengths(parts) > 0])
  }
  do.call(knitr::knit_engines$set, stats::setNames(list(engine), name))
  invisible(engine)
}

# Tools: functions of the host's that the code may call.

NAME <- "^[A-Za-z.][A-Za-z0-9_.]*$"
TYPES <- c("numeric", "character", "logical", "integer", "list", "data.frame")

securer_tool <- function(name, description, fn, args = list()) {
  valid <- is.character(name) && length(name) == 1 && !is.na(name) && grepl(NAME, name)
  if (!valid) stop("Tool name must be a valid R identifier, not \"", paste(name, collapse = " "), "\"", call. = FALSE)
  if (!is.function(fn)) stop("`fn` must be a function", call. = FALSE)
  for (a in names(args)) {
    if (!grepl(NAME, a)) stop("Argument name must be a valid R identifier, not \"", a, "\"", call. = FALSE)
  }
  structure(list(name = name, description = description, fn = fn, args = as.list(args)), class = "securer_tool")
}

format.securer_tool <- function(x, ...) {
  d <- if (nchar(x$description) > 60) paste0(substr(x$description, 1, 57), "...") else x$description
  paste0("<securer_tool>\n  Name: ", x$name, "\n  Description: ", d, "\n  Args: ", length(x$args), " args")
}

print.securer_tool <- function(x, ...) {
  cat(format(x), "\n", sep = "")
  invisible(x)
}

# A list of tools by name, from securer_tool()s or a named list of functions.
check_tools <- function(tools) {
  is_legacy <- length(tools) > 0 && !is.null(names(tools)) && all(vapply(tools, is.function, NA))
  if (is_legacy) {
    .Deprecated(msg = "A named list of functions is deprecated: use securer_tool().")
    tools <- lapply(names(tools), function(n) {
      t <- securer_tool(n, "", tools[[n]], stats::setNames(vector("list", length(formals(tools[[n]]))), names(formals(tools[[n]]))))
      t$is_legacy <- TRUE
      t
    })
  }
  for (t in tools) if (!inherits(t, "securer_tool")) stop("`tools` must be a list of securer_tool() objects", call. = FALSE)
  names <- vapply(tools, function(t) t$name, "")
  if (anyDuplicated(names)) {
    stop("Duplicate tool names: ", paste0('"', unique(names[duplicated(names)]), '"', collapse = ", "), call. = FALSE)
  }
  stats::setNames(as.list(tools), names)
}

tool_params <- function(tools) {
  lapply(unname(tools), function(t) {
    p <- list(name = t$name, description = as.character(t$description))
    if (length(t$args) > 0) {
      p$args <- lapply(t$args, function(type) {
        if (is.character(type) && length(type) == 1 && type %in% TYPES) type
        else if (is.list(type)) type
        else json_text("null")
      })
    }
    for (field in c("approval", "max_calls", "timeout_ms", "result_bytes", "command", "category")) {
      if (!is.null(t[[field]])) p[[field]] <- t[[field]]
    }
    p
  })
}

# Tools: functions of the host's that the code may call.

NAME <- "^[A-Za-z.][A-Za-z0-9_.]*$"
TYPES <- c("numeric", "character", "logical", "integer", "list", "data.frame")

# Its properties are slots, so that tool@name works as it does in securer. options: what Cordon knows beyond that.
setClass("securer_tool", slots = c(name = "character", description = "character", fn = "function", args = "list", options = "list"))
PROPERTIES <- c("name", "description", "fn", "args")
OPTIONS <- c("approval", "max_calls", "timeout_ms", "result_bytes", "command", "category", "is_legacy")

is_string <- function(x) is.character(x) && length(x) == 1 && !is.na(x)

check_tool_name <- function(name) {
  if (!is_string(name) || !grepl(NAME, name)) {
    stop("Tool name must be a valid R identifier, not \"", paste(name, collapse = " "), "\"", call. = FALSE)
  }
}

securer_tool <- function(name, description, fn, args = list()) {
  check_tool_name(name)
  if (!is_string(description)) stop("`description` must be a single character string", call. = FALSE)
  if (!is.function(fn)) stop("`fn` must be a function", call. = FALSE)
  args <- as.list(args)
  if (length(args) > 0 && is.null(names(args))) stop("`args` must be a named list of types", call. = FALSE)
  for (a in names(args)) {
    if (!grepl(NAME, a)) stop("Argument name must be a valid R identifier, not \"", a, "\"", call. = FALSE)
  }
  securer_tool_class(name, description, fn, args)
}

# The class itself, called: it checks types only. A tool that no code could call is refused when a session gets it.
securer_tool_class <- function(name = character(0), description = character(0), fn = function() NULL, args = list()) {
  new("securer_tool", name = name, description = description, fn = fn, args = args, options = list())
}

"$.securer_tool" <- function(x, name) if (name %in% PROPERTIES) methods::slot(x, name) else x@options[[name]]
"[[.securer_tool" <- function(x, i) `$.securer_tool`(x, i)
"$<-.securer_tool" <- function(x, name, value) {
  if (name %in% PROPERTIES) methods::slot(x, name) <- value
  else if (name %in% OPTIONS) x@options[[name]] <- value
  else stop("a tool has no `", name, "`; there are: ", paste(c(PROPERTIES, OPTIONS), collapse = ", "), call. = FALSE)
  x
}

format.securer_tool <- function(x, ...) {
  d <- if (nchar(x$description) > 60) paste0(substr(x$description, 1, 57), "...") else x$description
  paste0("<securer_tool>\n  Name: ", x$name, "\n  Description: ", d, "\n  Args: ", length(x$args), " args")
}

print.securer_tool <- function(x, ...) {
  cat(format(x), "\n", sep = "")
  invisible(x)
}
setMethod("show", "securer_tool", function(object) print.securer_tool(object))
# Around the table of the method is all that `methods` knows of show(): half of the package, read by every library(cordon). R looks only
# into the table.
local({
  table <- get0(".__T__show:methods", envir = topenv(), inherits = FALSE)
  if (is.environment(table)) parent.env(table) <- baseenv()
})

# A list of tools by name, from securer_tool()s or a named list of functions.
check_tools <- function(tools) {
  if (length(tools) == 0) return(list())
  is_legacy <- is.list(tools) && !is.null(names(tools)) && all(vapply(tools, is.function, NA))
  if (is_legacy) {
    .Deprecated(msg = "Passing tools as a named list of functions is deprecated. Use securer_tool() objects instead.")
    tools <- lapply(names(tools), function(n) {
      t <- securer_tool(n, "", tools[[n]], stats::setNames(vector("list", length(formals(tools[[n]]))), names(formals(tools[[n]]))))
      t$is_legacy <- TRUE
      t
    })
  }
  for (t in tools) if (!inherits(t, "securer_tool")) stop("Each tool must be created with securer_tool()", call. = FALSE)
  for (t in tools) check_tool_name(t$name)
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
    c(p, t@options[setdiff(names(t@options), "is_legacy")])
  })
}

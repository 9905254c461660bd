# Parameters as JSON. Values that cross the wall go through C_value_encode (docs/values.md); this is for policies, tools and
# the like, where c("a", "b") is an array and 10 an integer.

quote_json <- function(x) .Call(C_text_quote, as.character(x))

number_json <- function(x) {
  if (is.na(x) || is.infinite(x)) return("null")
  if (x == trunc(x) && abs(x) < 2^63) return(sprintf("%.0f", x + 0)) # -0 is 0; format() takes ten times as long
  format(x, digits = 17)
}

scalar_json <- function(x) {
  if (is.na(x)) "null"
  else if (is.logical(x)) if (x) "true" else "false"
  else if (is.numeric(x)) number_json(x)
  else quote_json(x)
}

to_json <- function(x) {
  if (is.atomic(x) && length(x) == 1L && !is.object(x)) return(scalar_json(x)) # most of them
  if (inherits(x, "json_text")) return(as.character(x))
  if (is.null(x)) return("null")
  if (is.list(x) && !is.null(names(x))) {
    if (length(x) == 0) return("{}")
    fields <- paste0(quote_json(names(x)), ":", vapply(x, to_json, ""))
    return(paste0("{", paste(fields, collapse = ","), "}"))
  }
  if (is.list(x)) return(paste0("[", paste(vapply(x, to_json, ""), collapse = ","), "]"))
  if (length(x) == 1 && !inherits(x, "AsIs")) return(scalar_json(x))
  paste0("[", paste(vapply(as.list(x), scalar_json, ""), collapse = ","), "]")
}

json_text <- function(text) structure(text, class = "json_text")
empty_object <- function() structure(list(), names = character())

printed <- function(x) paste(utils::capture.output(print(x)), collapse = "\n")
value_json <- function(x) json_text(.Call(C_value_encode, x, printed))
context_json <- function(context) {
  if (length(context) == 0) return(empty_object())
  stopifnot(is.list(context), !is.null(names(context)))
  lapply(context, value_json)
}

# A function, environment or connection of a session with the guest r. It prints as it does there; in a context, and as a
# tool's result, it is the object itself.
format.cordon_handle <- function(x, ...) as.character(unclass(x))
print.cordon_handle <- function(x, ...) {
  cat(format(x), sep = "\n")
  invisible(x)
}

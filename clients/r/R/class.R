# The classes: R6's where that package is installed, as in securer, so that others can inherit from them; else our own, which do the
# same except for that. Methods find their object as `self` and what is hidden in it as `private`.

plain_object <- function(classname, public, private) {
  self <- new.env(parent = emptyenv())
  hidden <- new.env(parent = emptyenv())
  around <- new.env(parent = topenv())
  around$self <- self
  around$private <- hidden
  fill <- function(env, members) for (name in names(members)) {
    member <- members[[name]]
    if (is.function(member)) environment(member) <- around
    assign(name, member, envir = env)
    if (is.function(member)) lockBinding(name, env)
  }
  fill(self, public)
  fill(hidden, private)
  lockEnvironment(self)
  lockEnvironment(hidden)
  class(self) <- classname
  self
}

plain_class <- function(classname, public, private) {
  is_method <- vapply(public, is.function, NA)
  generator <- new.env(parent = emptyenv())
  generator$classname <- classname
  generator$public_methods <- public[is_method]
  generator$new <- function(...) {
    object <- plain_object(classname, public, private)
    object$initialize(...)
    object
  }
  lockEnvironment(generator, bindings = TRUE)
  structure(generator, class = "cordon_class")
}

r6_class <- function(classname, public, private) {
  generator <- R6::R6Class(classname, public = public, private = private, cloneable = FALSE, parent_env = topenv())
  class(generator) <- c("cordon_class", class(generator))
  generator
}

# A call as its user writes it, with the defaults.
signature_of <- function(name, fn) {
  defaults <- formals(fn)
  args <- vapply(names(defaults), function(a) {
    if (identical(defaults[[a]], quote(expr = ))) a else paste(a, "=", paste(deparse(defaults[[a]]), collapse = " "))
  }, "")
  paste0(name, "(", paste(args, collapse = ", "), ")")
}

format.cordon_class <- function(x, ...) {
  methods <- x$public_methods
  calls <- c(signature_of(paste0(x$classname, "$new"), methods$initialize),
             unlist(lapply(setdiff(names(methods), "initialize"), function(n) signature_of(paste0("  $", n), methods[[n]]))))
  c(paste0("<", x$classname, "> class"), strwrap(calls, width = 100, indent = 2, exdent = 6))
}

print.cordon_class <- function(x, ...) {
  cat(format(x), sep = "\n")
  invisible(x)
}

# What a class is, once somebody uses it: looking for R6 and loading it takes a quarter of the time of library(cordon).
either_class <- function(classname, public, private) {
  (if (requireNamespace("R6", quietly = TRUE)) r6_class else plain_class)(classname, public, private)
}

.onLoad <- function(libname, pkgname) {
  here <- topenv()
  delayedAssign("SecureSession", either_class("SecureSession", session_public, session_private), here, here)
  delayedAssign("SecureSessionPool", either_class("SecureSessionPool", pool_public, pool_private), here, here)
}

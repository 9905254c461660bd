# One table of behaviours for the clients of every language; it lives with the other clients.
decode <- function(text) .Call(cordon:::C_value_decode, text)
ALL <- as.raw(0:255)

content <- function(step) {
  if (!is.null(step$bytes)) ALL
  else if (!is.null(step[["repeat"]])) charToRaw(strrep(step[["repeat"]][[1]], step[["repeat"]][[2]]))
  else charToRaw(enc2utf8(step$text))
}

# Tuples and vectors are lists to the table; numbers are numbers.
plain <- function(v) {
  if (is.list(v)) lapply(v, plain)
  else if (length(v) > 1) lapply(unname(as.list(v)), plain)
  else if (is.integer(v)) as.numeric(v)
  else v
}
same <- function(a, b) identical(plain(a), plain(b))

check_result <- function(r, step, streamed) {
  got <- list(success = r$success, value = r$value, error = r$error, error_kind = r$error_kind, stdout = r$stdout, stderr = r$stderr,
              exit_code = r$exit_code, restarted = r$restarted, restart_reason = r$restart_reason,
              tool_calls = r$tool_calls, truncated_stdout = r$truncated$stdout,
              streamed_stdout = streamed$stdout, streamed_stderr = streamed$stderr, assurance_wall = r$assurance$wall)
  for (key in names(step$expect)) {
    want <- step$expect[[key]]
    if (key == "error_has") {
      if (!grepl(want, r$error, fixed = TRUE)) stop("'", want, "' is not in '", r$error, "'")
    } else if (!same(got[[key]], want)) {
      stop(key, " is ", deparse(got[[key]])[1], ", want ", deparse(want)[1])
    }
  }
}

do_execute <- function(on, step) {
  streamed <- new.env()
  streamed$stdout <- streamed$stderr <- ""
  watch <- if (isTRUE(step$stream)) function(stream, data) assign(stream, paste0(get(stream, streamed), data), streamed)
  timeout <- if (is.null(step$timeout_ms)) NA else step$timeout_ms / 1000
  context <- if (is.null(step$context)) list() else step$context
  args <- list(step$code, context, timeout, on_output = watch)
  if (!is.null(step$tool_calls)) args$max_tool_calls <- step$tool_calls
  check_result(do.call(on$evaluate, args), step, streamed)
}

in_folder <- function(work) {
  folder <- tempfile("folder-")
  dir.create(folder)
  on.exit(unlink(folder, recursive = TRUE))
  work(folder)
}

do_step <- function(on, step, state) {
  switch(step$do,
    execute = do_execute(on, step),
    write = on$files$write(step$path, content(step)),
    append = on$files$append(step$path, content(step)),
    read = { data <- on$files$read(step$path); stopifnot(identical(data, content(step))) },
    upload = in_folder(function(folder) {
      local <- file.path(folder, "e")
      seen <- NULL
      writeBin(content(step), local)
      on$files$upload(local, step$path, progress = function(done, total) seen <<- c(done, total))
      stopifnot(identical(as.numeric(seen), rep(as.numeric(length(content(step))), 2)))
    }),
    download = in_folder(function(folder) {
      local <- file.path(folder, "out")
      tryCatch(on$files$download(step$path, local), finally = stopifnot(all(list.files(folder, all.files = TRUE, no.. = TRUE) == "out")))
      stopifnot(identical(readBin(local, "raw", file.size(local)), content(step)))
    }),
    tar = in_folder(function(folder) {
      on$files$get_tar(step$path, file.path(folder, "t"))
      on$files$mkdir(step$to)
      on$files$put_tar(step$to, file.path(folder, "t"))
    }),
    watch = assign("watch", on$files$watch(step$path, !isFALSE(step$recursive)), state),
    changes = { d <- get("watch", state)$changes(step$wait_ms / 1000); stopifnot(identical(paste(d$change, d$path, d$type), as.character(unlist(step$want)))) },
    unwatch = get("watch", state)$close(),
    stat = { i <- on$files$stat(step$path); stopifnot(i$type == step$type, i$size == step$size) },
    list = stopifnot(identical(sort(on$files$list(step$path)$name), unlist(step$names))),
    mkdir = on$files$mkdir(step$path),
    move = on$files$move(step$from, step$to),
    remove = on$files$remove(step$path, isTRUE(step$recursive)),
    snapshot = on$snapshot(step$as),
    restore = on$restore(step$name),
    fork = assign(step$as, on$fork(), state),
    export = assign("blob", on$export(), state),
    import = on$import(get("blob", state)),
    restart = on$restart(),
    setenv = on$setenv(step$name, step$value),
    close = on$close(),
    stop("unknown operation ", step$do))
}

must_fail <- function(want, action) {
  e <- tryCatch({ action(); NULL }, cordon_error = identity)
  if (is.null(e)) stop("it did not fail")
  if (!isTRUE(want) && !identical(e$kind, want)) stop(e$kind, ", want ", want, ": ", conditionMessage(e))
}

run_case <- function(case) {
  tools <- unname(TOOLS[unlist(case$tools)])
  policy <- if (is.null(case$policy)) list() else lapply(case$policy, function(x) if (is.list(x)) I(unlist(x)) else x)
  env <- if (is.null(case$env)) list() else case$env
  open <- function() {
    if (!is.null(case$pool)) SecureSessionPool$new(size = case$pool, tools = tools, reset_between_uses = TRUE, guest = case$guest, policy = policy, env = env)
    else SecureSession$new(tools = tools, guest = case$guest, policy = policy, env = env)
  }
  if (!is.null(case$open_fails)) return(must_fail(case$open_fails, open))
  session <- open()
  on.exit(session$close())
  state <- new.env()
  for (step in case$steps) {
    on <- if (is.null(step$on)) session else get(step$on, state)
    if (is.null(step$fails)) do_step(on, step, state) else must_fail(step$fails, function() do_step(on, step, state))
  }
}

test_that("the table can fail", {
  needs_program()
  fails_with("want 2", run_case(list(guest = "python", steps = list(list(do = "execute", code = "1", expect = list(value = 2L))))))
  fails_with("did not fail", run_case(list(guest = "python", steps = list(list(do = "execute", code = "1", fails = "state")))))
})

table_cases <- function() {
  root <- Sys.getenv("CORDON_SOURCE")
  if (!nzchar(root)) return(list())
  lines <- readLines(file.path(root, "tests/clients/table.json"), encoding = "UTF-8")
  decode(paste(lines, collapse = "\n"))$cases
}
test_that("the table is there", {
  repository()
  expect_gt(length(table_cases()), 40)
})
for (case in table_cases()) {
  test_that(paste("table:", case$name), {
    needs_program()
    expect_error(run_case(case), NA)
  })
}

test_that("the table of values", {
  needs_program()
  root <- repository()
  lines <- readLines(file.path(root, "tests/clients/table.json"), encoding = "UTF-8")
  rows <- decode(paste(lines, collapse = "\n"))$values
  expect_gt(length(rows), 70)
  guests <- list()
  on.exit(for (s in guests) s$close())
  for (row in rows) {
    if (is.null(guests[[row$guest]])) guests[[row$guest]] <- SecureSession$new(guest = row$guest)
    want <- eval(parse(text = row$r, keep.source = FALSE), globalenv())
    r <- guests[[row$guest]]$evaluate(row$code)
    got <- r$value
    if (inherits(got, "cordon_handle")) got <- format(got)
    expect_true(identical(got, want), info = paste(row$guest, row$name, "came as", paste(deparse(got), collapse = " "), r$error))
  }
})

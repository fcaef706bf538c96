"""The labelled sets and catalogs of the benchmarks, built from their public sources on the machine that uses them.

`recipe` has the nouns: read it first. A conversion is one module here, named after its set; `recipes` lists them all.
`repositories` reads public git repositories at a commit, `folder` writes and checks a set, `command` is
`pegboard-bench sets`. `checksums.json` says what every set contains when it is whole.
"""

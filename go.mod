module github.com/lathe-ml/lathe

go 1.26

require (
	github.com/dave/jennifer v1.7.1
	github.com/google/flatbuffers v25.12.19+incompatible
)

module github.com/holdfast-locks/holdfast

go 1.26.0

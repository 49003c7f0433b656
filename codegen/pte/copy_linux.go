package pte

import (
	"os"

	"golang.org/x/sys/unix"
)

// kernelCopy copies up to n bytes of src at off to dst's position. It gives 0 without
// an error when the kernel cannot copy between these files, or src ends at off.
func kernelCopy(dst, src *os.File, off int64, n int) (int, error) {
	for {
		at := off
		k, err := unix.CopyFileRange(int(src.Fd()), &at, int(dst.Fd()), nil, n, 0)
		switch err {
		case nil:
			return k, nil
		case unix.EINTR, unix.EAGAIN:
		case unix.ENOSYS, unix.EXDEV, unix.EINVAL, unix.EOPNOTSUPP, unix.EPERM, unix.EBADF, unix.EIO:
			return 0, nil
		default:
			return 0, &os.PathError{Op: "write", Path: dst.Name(), Err: err}
		}
	}
}

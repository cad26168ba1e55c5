package onefile

import "slices"

// Remote reports whether several hosts share file systems of this type. The file locks and shared
// memory of different hosts do not exclude each other. A virtual machine and its host are two
// hosts.
func Remote(fileSystem string) bool { return slices.Contains(remote, fileSystem) }

var remote = []string{
	"9p", "afpfs", "afs", "beegfs", "ceph", "cifs", "coda", "gfs2", "glusterfs", "gpfs", "lustre", "nfs", "nfs4",
	"ocfs2", "orangefs", "prl_fs", "pvfs2", "smb2", "smb3", "smbfs", "vboxsf", "virtiofs", "vmhgfs", "webdav", "wekafs",
	"fuse.ceph", "fuse.ceph-fuse", "fuse.gcsfuse", "fuse.glusterfs", "fuse.grpcfuse", "fuse.hdfs", "fuse.juicefs",
	"fuse.mfs", "fuse.mountpoint-s3", "fuse.osxfs", "fuse.rclone", "fuse.s3fs", "fuse.seaweedfs", "fuse.sshfs",
	"fuse.vmhgfs-fuse", "macfuse", "osxfuse",
}

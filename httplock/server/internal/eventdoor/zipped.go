package eventdoor

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"hash/crc32"
	"sync"
)

// A press compresses a text once for many readers, into whole blocks of DEFLATE (RFC 1951)
// without references to earlier data: they fit into the gzip stream of every reader.
type press struct {
	mu   sync.Mutex
	zip  *flate.Writer
	into bytes.Buffer
}

func (p *press) press(text []byte) (blocks []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.into.Reset(); p.zip == nil {
		p.zip, _ = flate.NewWriter(&p.into, flate.BestSpeed) // the level is valid
	}
	p.zip.Reset(&p.into)
	_, _ = p.zip.Write(text) // to memory
	_ = p.zip.Flush()
	return bytes.Clone(p.into.Bytes())
}

// A gzipped is the state of the gzip stream of one reader (RFC 1952).
type gzipped struct{ size, sum uint32 }

// gzipHead begins such a stream: no name, no time, unknown system.
const gzipHead = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"

const emptyBlock = "\x00\x00\x00\xff\xff"

// add counts a text of the stream in its size and checksum.
func (z *gzipped) add(text []byte) {
	z.size += uint32(len(text))
	z.sum = crc32.Update(z.sum, crc32.IEEETable, text)
}

// addOwn adds a text of this reader alone, uncompressed: it is short, and a compressor would
// take far more memory than it saves. An empty block after it makes Go's reader return it at
// once.
func (z *gzipped) addOwn(to []byte, text string) []byte {
	z.add([]byte(text))
	to = append(to, 0)
	to = binary.LittleEndian.AppendUint16(to, uint16(len(text)))
	to = binary.LittleEndian.AppendUint16(to, ^uint16(len(text)))
	return append(append(to, text...), emptyBlock...)
}

// end adds an empty last block, and the trailer with the checksum and the size.
func (z *gzipped) end(to []byte) []byte {
	to = binary.LittleEndian.AppendUint32(append(to, 3, 0), z.sum)
	return binary.LittleEndian.AppendUint32(to, z.size)
}

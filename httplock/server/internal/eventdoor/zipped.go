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

// A pressed is a text in such blocks. It is read-only.
type pressed struct {
	blocks []byte
	size   uint32 // of the text
	sum    uint32 // the CRC-32 of the text
	shift  uint32 // multiply a CRC-32 by it to append the text
}

func (p *press) press(text []byte) pressed {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.into.Reset(); p.zip == nil {
		p.zip, _ = flate.NewWriter(&p.into, flate.BestSpeed) // the level is valid
	}
	p.zip.Reset(&p.into)
	_, _ = p.zip.Write(text) // to memory
	_ = p.zip.Flush()
	sum := crc32.ChecksumIEEE(text)
	return pressed{
		blocks: bytes.Clone(p.into.Bytes()), size: uint32(len(text)), sum: sum,
		shift: crc32.Update(one, crc32.IEEETable, text) ^ crc32.Update(0, crc32.IEEETable, text),
	}
}

// A gzipped is the state of the gzip stream of one reader (RFC 1952).
type gzipped struct{ size, sum uint32 }

// gzipHead begins such a stream: no name, no time, unknown system.
const gzipHead = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"

const emptyBlock = "\x00\x00\x00\xff\xff"

// add returns the blocks of a text that other readers get as well.
func (z *gzipped) add(p *pressed) []byte {
	z.size += p.size
	z.sum = times(z.sum, p.shift) ^ p.sum
	return p.blocks
}

// addOwn adds a text of this reader alone, uncompressed: it is short, and a compressor would
// take far more memory than it saves. An empty block after it makes Go's reader return it at
// once.
func (z *gzipped) addOwn(to []byte, text string) []byte {
	z.size += uint32(len(text))
	z.sum = crc32.Update(z.sum, crc32.IEEETable, []byte(text))
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

// A CRC-32 is a polynomial over two elements, whose lowest coefficient is the highest bit.
const one = 1 << 31

// times multiplies two such polynomials.
func times(a, b uint32) (product uint32) {
	for ; a != 0; a <<= 1 {
		if a&one != 0 {
			product ^= b
		}
		b = b>>1 ^ crc32.IEEE&-(b&1)
	}
	return product
}

/* SPDX-License-Identifier: MIT */
/*
 * The tape: what an application asked of its files and devices, and what came of it.
 *
 * A tape is a header, then blocks: metadata, file and stream tables (as they are met),
 * operations (some tens of thousands a block, column coded), and at the end an index.
 * The bytes are specified in tape.5. This header is the only way in and out of a tape.
 *
 * Lifecycle: reader: trace_reader_open, trace_reader_next until 0, trace_reader_free.
 *            writer: trace_writer_open, tables and ops in any order so long as an entry
 *            precedes the ops that name it, trace_writer_close.
 * Threads:   one reader or writer belongs to one thread at a time; different ones are
 *            independent. There are no globals. Nothing here prints or exits.
 * Errors:    0 or a count, else -errno; the diag handed to open receives the one
 *            description. -EBADMSG damaged bytes, -EPROTONOSUPPORT a newer version,
 *            -EINVAL a caller's mistake, -ENOMEM, and what read or write returned.
 */
#ifndef TRACES_TRACE_H
#define TRACES_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct diag;

#define TRACE_MUST_CHECK __attribute__((warn_unused_result))

/* Values that mean "the source did not say". */
#define TRACE_UNKNOWN_U64  UINT64_MAX /* latency, offset, size, ref, submit time */
#define TRACE_UNKNOWN_I64  INT64_MIN  /* result, due time */
#define TRACE_NONE_U32     UINT32_MAX /* file, file2, stream, batch */

/*
 * What was asked. The numbers are part of the format: add at the end only.
 * trace_op_name() gives the word used on command lines, in JSON keys and dumps.
 */
enum trace_op_kind {
    TRACE_READ = 0,
    TRACE_WRITE = 1,
    TRACE_FSYNC = 2,
    TRACE_FDATASYNC = 3,
    TRACE_SYNC_RANGE = 4,   /* sync_file_range */
    TRACE_DISCARD = 5,      /* block discard, or a hole punched in a file */
    TRACE_WRITE_ZEROES = 6, /* block write-zeroes, or FALLOC_FL_ZERO_RANGE */
    TRACE_FLUSH = 7,        /* a device's bare cache flush */
    TRACE_SYNCFS = 8,       /* sync or syncfs */
    TRACE_COPY = 9,         /* copy_file_range, sendfile, splice: file -> file2 */
    TRACE_READAHEAD = 10,   /* readahead, posix_fadvise(WILLNEED) */
    TRACE_MSYNC = 11,
    TRACE_MMAP = 12,        /* length bytes of file mapped at offset; arg = PROT_ bits */
    TRACE_MUNMAP = 13,
    TRACE_FALLOCATE = 14,   /* arg = mode; punch and zero have kinds of their own */
    TRACE_TRUNCATE = 15,    /* length = the new size */
    TRACE_OPEN = 16,        /* arg = O_ flags (Linux asm-generic numbers) */
    TRACE_CLOSE = 17,
    TRACE_CREATE = 18,      /* an open that was seen to create the file; arg as OPEN */
    TRACE_UNLINK = 19,
    TRACE_RENAME = 20,      /* file -> file2 */
    TRACE_LINK = 21,        /* file -> file2 */
    TRACE_SYMLINK = 22,     /* file2 = the link, file = what it names */
    TRACE_MKDIR = 23,       /* arg = mode */
    TRACE_RMDIR = 24,
    TRACE_ZONE_APPEND = 25,
    TRACE_ZONE_RESET = 26,
    TRACE_ZONE_OPEN = 27,
    TRACE_ZONE_CLOSE = 28,
    TRACE_ZONE_FINISH = 29,
    TRACE_PASSTHROUGH = 30, /* SCSI or NVMe pass-through: known to have happened, no more */
    TRACE_FILL = 31,        /* mmap: page-cache fill, bytes only */
    TRACE_WRITEBACK = 32,   /* mmap: page-cache write-back, bytes only */
    TRACE_OP_COUNT
};

/* The call it was made through. Part of the format. */
enum trace_api {
    TRACE_API_UNKNOWN = 0,
    TRACE_API_SYNC = 1, /* read, pread64 ... */
    TRACE_API_VECTORED = 2,
    TRACE_API_LIBAIO = 3,
    TRACE_API_IO_URING = 4,
    TRACE_API_POSIX_AIO = 5,
    TRACE_API_MMAP = 6,
    TRACE_API_BLOCK = 7,
    TRACE_API_STDIO = 8,
    TRACE_API_COUNT
};

/* How far the latency can be believed. Upper bounds stay out of percentiles. */
enum trace_completion {
    TRACE_COMPLETION_UNKNOWN = 0, /* latency_ns is unknown */
    TRACE_COMPLETION_EXACT = 1,
    TRACE_COMPLETION_UPPER = 2, /* completed at or before issue + latency */
    TRACE_COMPLETION_COUNT
};

enum trace_op_flags {
    TRACE_F_DIRECT = 1u << 0,
    TRACE_F_SYNC = 1u << 1,  /* O_SYNC, RWF_SYNC; block: REQ_SYNC */
    TRACE_F_DSYNC = 1u << 2, /* O_DSYNC, RWF_DSYNC */
    TRACE_F_NOWAIT = 1u << 3,
    TRACE_F_POLLED = 1u << 4, /* RWF_HIPRI, IORING_SETUP_IOPOLL */
    TRACE_F_APPEND = 1u << 5,
    TRACE_F_FUA = 1u << 6,
    TRACE_F_PREFLUSH = 1u << 7, /* a write that also flushes first */
    TRACE_F_READAHEAD = 1u << 8,
    TRACE_F_META = 1u << 9,
    TRACE_F_DERIVED = 1u << 10,    /* deduced from other facts, not seen as a call */
    TRACE_F_INFLIGHT = 1u << 11,   /* not yet completed when the capture ended */
    TRACE_F_POSITION = 1u << 12,   /* used and moved the file position (read, not pread) */
    TRACE_F_FIXED_FILE = 1u << 13, /* io_uring registered file */
    TRACE_F_FIXED_BUF = 1u << 14,
    TRACE_F_LINK = 1u << 15,  /* io_uring: the next op of the batch waits for this one */
    TRACE_F_DRAIN = 1u << 16, /* io_uring: waits for all before it */
    TRACE_F_SQPOLL = 1u << 17,
    TRACE_F_REQUEUED = 1u << 18, /* block: issued more than once */
    TRACE_F_MERGED = 1u << 19,   /* block: merged into another request */
    TRACE_F_ATOMIC = 1u << 20,
    TRACE_F_FIXED_RESULT = 1u << 21, /* result is what was asked, the source did not say */
    TRACE_F_ROUNDED = 1u << 22,      /* result tape: offset or length aligned for O_DIRECT */
};

/* Why an op of a result tape was late. Part of the format. */
enum trace_cause {
    TRACE_CAUSE_NONE = 0,
    TRACE_CAUSE_WORKER_BUSY = 1,
    TRACE_CAUSE_DEPTH_CAP = 2,
    TRACE_CAUSE_ORDER = 3,
    TRACE_CAUSE_DECODER = 4,
    TRACE_CAUSE_RESULT_RING = 5,
    TRACE_CAUSE_WAKEUP = 6,
    TRACE_CAUSE_COUNT
};

/*
 * One operation. Times are ns since the tape's time 0, which in a normalised tape is the
 * first I/O op (name-space calls before it are negative); a raw tape may start anywhere.
 */
struct trace_op {
    int64_t issue_ns;
    uint64_t latency_ns; /* completed - issued, or TRACE_UNKNOWN_U64 */
    uint64_t offset;     /* bytes, or TRACE_UNKNOWN_U64 */
    uint64_t length;     /* bytes asked for; 0 where the kind has none */
    int64_t result;      /* bytes or -errno, or TRACE_UNKNOWN_I64 */
    int64_t due_ns;      /* result tapes: when it should have been issued; else unknown */
    uint64_t submit_ns;  /* time inside the call that issued it, or TRACE_UNKNOWN_U64 */
    uint64_t ref;        /* result tapes: index of the op in the replayed tape; else unknown */
    uint64_t batch;      /* ops of one submission call share it; TRACE_UNKNOWN_U64 = alone */
    uint32_t file;       /* index in the file table, or TRACE_NONE_U32 */
    uint32_t file2;      /* the second file of rename, link, copy; else TRACE_NONE_U32 */
    uint32_t stream;     /* index in the stream table, or TRACE_NONE_U32 */
    uint32_t flags;      /* enum trace_op_flags */
    uint32_t arg;        /* by kind, see enum trace_op_kind; else 0 */
    uint8_t kind;        /* enum trace_op_kind */
    uint8_t api;         /* enum trace_api */
    uint8_t completion;  /* enum trace_completion */
    uint8_t cause;       /* enum trace_cause */
};

/* A read with every optional field unknown: start from this, set what you know. */
#define TRACE_OP_INIT                                                                          \
    {                                                                                          \
        .latency_ns = TRACE_UNKNOWN_U64, .offset = TRACE_UNKNOWN_U64,                          \
        .result = TRACE_UNKNOWN_I64, .due_ns = TRACE_UNKNOWN_I64,                              \
        .submit_ns = TRACE_UNKNOWN_U64, .ref = TRACE_UNKNOWN_U64, .batch = TRACE_UNKNOWN_U64,  \
        .file = TRACE_NONE_U32, .file2 = TRACE_NONE_U32, .stream = TRACE_NONE_U32,             \
    }

const char *trace_op_name(unsigned int kind);   /* "read"; "?" when out of range */
const char *trace_api_name(unsigned int api);   /* "sync", "libaio" ... */
const char *trace_cause_name(unsigned int cause);
int trace_op_from_name(const char *name, size_t length); /* the kind, or -EINVAL */
int trace_api_from_name(const char *name, size_t length);
/* Names of the set flags, joined by '|'; "" when none. Returns buf. */
const char *trace_flags_text(uint32_t flags, char *buf, size_t size);
int trace_flag_from_name(const char *name, size_t length, uint32_t *ret_flag);

/* Moves or orders data (read ... readahead, zone ops, fill); the rest are name-space calls. */
bool trace_op_is_io(unsigned int kind);
/* Transfers that min_offset, max_end and byte counts speak of: read, write, discard, zeroes. */
bool trace_op_has_range(unsigned int kind);

/*
 * The bytes an op stands for in totals: what it moved where the result says so, else what it asked
 * for. A short read counts what came; block requests are counted as asked, as block tracers do.
 */
static inline uint64_t trace_op_bytes(const struct trace_op *op)
{
    bool moves = op->kind == TRACE_READ || op->kind == TRACE_WRITE || op->kind == TRACE_COPY;

    if (!moves || op->api == TRACE_API_BLOCK || op->result == TRACE_UNKNOWN_I64)
        return op->length;
    return op->result < 0 ? 0 : (uint64_t)op->result;
}

enum trace_file_kind {
    TRACE_FILE_UNKNOWN = 0,
    TRACE_FILE_REGULAR = 1,
    TRACE_FILE_BLOCK = 2,
    TRACE_FILE_DIRECTORY = 3,
    TRACE_FILE_CHAR = 4,
    TRACE_FILE_PIPE = 5,
    TRACE_FILE_SOCKET = 6,
    TRACE_FILE_OTHER = 7,
    TRACE_FILE_KIND_COUNT
};

enum trace_file_flags {
    TRACE_FILE_SPARSE = 1u << 0,
    TRACE_FILE_CREATED = 1u << 1, /* did not exist before the tape's first touch */
};

/* One entry of the file table. Also the manifest that replay --prepare builds from. */
struct trace_file {
    const char *path;      /* absolute where the source knew; bytes, no NUL; owned by the table */
    uint64_t size_bytes;   /* at first touch, or TRACE_UNKNOWN_U64 */
    uint64_t inode;        /* 0 = unknown */
    uint64_t device;       /* kernel dev_t (major << 20 | minor); of the device itself for
                              a block device; 0 = unknown */
    uint32_t mode;         /* permission bits, 0 = unknown */
    uint32_t flags;        /* enum trace_file_flags */
    uint8_t kind;          /* enum trace_file_kind */
    /* Totals, written by convert at the end of a normalised tape; read back by readers of
     * seekable tapes; TRACE_UNKNOWN_U64 before that. */
    uint64_t ops, bytes, max_end;
};

struct trace_stream {
    uint32_t pid, tid; /* 0 = unknown */
    uint32_t ppid;     /* 0 = unknown */
    const char *comm;  /* "" = unknown; owned by the table */
};

/* Metadata keys that programs read. Others may be added freely; values are UTF-8 text. */
#define TRACE_META_TOOL        "tool"         /* "iotape 0.1" */
#define TRACE_META_KERNEL      "kernel"       /* uname release of the recording machine */
#define TRACE_META_CLOCK       "clock"        /* "monotonic", "trace", "simulated" ... */
#define TRACE_META_START_WALL  "start_wall_ns" /* Unix ns of the tape's time 0 */
#define TRACE_META_CAPTURE_START "capture_start_ns" /* tape time at which recording began */
#define TRACE_META_SOURCE      "source"       /* input format: "blktrace", "capture" ... */
#define TRACE_META_RECORDER    "recorder"
#define TRACE_META_COMMAND     "command"      /* the traced or replayed command line */
#define TRACE_META_EVENT       "event"        /* "Q", "D", "C": the event that stands for the I/O */
#define TRACE_META_CANNOT_TELL "cannot_tell"  /* comma list: latency,stream,result,offset,time,
                                                 batch,path,size,mmap,io_uring,close */
#define TRACE_META_TIME_UNIT_NS "time_unit_ns" /* granularity of the source's time stamps */
#define TRACE_META_END         "end"          /* "clean", "killed", "signal", "disk-full", "abrupt" */
#define TRACE_META_SAMPLE      "sample_one_in" /* at the end one stream in so many was recorded */
#define TRACE_META_SAMPLE_STEPS "sample_steps" /* ns since the capture's begin:one in so many, ... */
#define TRACE_META_SAMPLE_PASSED "sample_passed_over" /* ops of the streams that were not */
#define TRACE_META_RESULT_OF   "result_of"    /* result tapes: name of the replayed tape */
#define TRACE_META_CONFIG      "config"       /* result tapes: the replay's options as JSON */

/* Bytes in. read returns a count, 0 at the end, or -errno, and may be short. */
struct trace_source {
    int64_t (*read)(void *context, void *buffer, size_t bytes);
    /* NULL when the source cannot seek; else as pread(2). */
    int64_t (*pread)(void *context, void *buffer, size_t bytes, uint64_t offset);
    uint64_t size_bytes; /* TRACE_UNKNOWN_U64 when it cannot tell */
    void (*close)(void *context); /* NULL when there is nothing to close */
    void *context;
    const char *name; /* for messages; copied */
};

/* Bytes out. write takes all or returns -errno. */
struct trace_sink {
    int (*write)(void *context, const void *buffer, size_t bytes);
    int (*flush)(void *context); /* after every block; NULL when not needed */
    int (*close)(void *context, bool keep); /* keep false: an error, remove what is half made */
    void *context;
    const char *name; /* copied */
};

/* "-" is standard input. A directory or an empty file is an error. */
int trace_source_path(struct trace_source *ret_source, const char *path, struct diag *diag)
    TRACE_MUST_CHECK;

enum trace_sink_how {
    TRACE_SINK_RENAME,    /* a temporary name beside path, renamed into place when whole */
    TRACE_SINK_IN_PLACE,  /* under its own name, valid after every block (captures, result tapes) */
};
/*
 * "-" is standard output. Mode 0600, owned by SUDO_UID/SUDO_GID when set and root. Without
 * force an existing file is -EEXIST; a path that is not a regular file (/dev/null, a fifo) is
 * opened as it is and never renamed over or removed.
 */
int trace_sink_path(struct trace_sink *ret_sink, const char *path, enum trace_sink_how how,
                    bool force, struct diag *diag) TRACE_MUST_CHECK;

/* ---- reading ---------------------------------------------------------------------- */

struct trace_reader;

/* What is wrong with a tape, as far as it has been read. A whole tape has zeros. */
struct trace_damage {
    uint64_t blocks;      /* blocks whose CRC, header or contents were wrong */
    uint64_t ops;         /* records known to be lost with them */
    uint64_t first_offset; /* byte offset of the first, TRACE_UNKNOWN_U64 when none */
    bool truncated;       /* no end block */
};

/*
 * Takes the source over (closed by trace_reader_free, and on failure). Reads the header and
 * the tables in front of the first ops. A tape with a damaged block still opens; see
 * trace_reader_damage. diag stays the reader's until free: each damaged block is a
 * diag_note ("t.tape: block 12 at byte 40960: checksum wrong, 32768 ops lost").
 */
int trace_reader_open(struct trace_reader **ret_reader, struct trace_source *source,
                      struct diag *diag) TRACE_MUST_CHECK;
/* trace_source_path and trace_reader_open in one. */
int trace_reader_open_path(struct trace_reader **ret_reader, const char *path,
                           struct diag *diag) TRACE_MUST_CHECK;
void trace_reader_free(struct trace_reader *reader); /* NULL is fine */

/*
 * The next operations, all of one block: 1 and *ret_ops, *ret_count (> 0), valid until the next
 * call; 0 at the end. They come in pieces that fit the near caches. Damaged blocks are skipped and
 * counted.
 */
int trace_reader_next(struct trace_reader *reader, const struct trace_op **ret_ops,
                      size_t *ret_count) TRACE_MUST_CHECK;

/* As next, but reads only the header of the block: nothing is decoded, see below. */
struct trace_block_summary {
    uint64_t offset_bytes; /* of the block in the file */
    uint64_t stored_bytes; /* header and payload */
    uint64_t first_index;  /* index of its first op in the tape */
    uint32_t ops;
    int64_t first_ns, last_ns; /* lowest and highest issue time */
    uint64_t min_offset, max_end; /* of ranged ops longer than 0; min > max when none */
    uint64_t op_count[TRACE_OP_COUNT];
    uint64_t op_bytes[TRACE_OP_COUNT]; /* sums of trace_op_bytes */
};
int trace_reader_next_summary(struct trace_reader *reader,
                              struct trace_block_summary *ret_summary) TRACE_MUST_CHECK;

/*
 * The next trace_reader_next starts with the block that may hold the first op at or after
 * time_ns. -ESPIPE on a source that cannot seek. Works with and without the index.
 */
int trace_reader_seek_ns(struct trace_reader *reader, int64_t time_ns) TRACE_MUST_CHECK;
int trace_reader_rewind(struct trace_reader *reader) TRACE_MUST_CHECK; /* -ESPIPE likewise */

bool trace_reader_is_raw(const struct trace_reader *reader); /* not normalised */
bool trace_reader_is_result(const struct trace_reader *reader);
bool trace_reader_can_seek(const struct trace_reader *reader);
const char *trace_reader_name(const struct trace_reader *reader);
/* Ops of the whole tape: from the index or by walking the headers; TRACE_UNKNOWN_U64 on a
 * pipe that has not ended. */
uint64_t trace_reader_op_count(struct trace_reader *reader);
/* Index in the tape of the first op last returned by next. */
uint64_t trace_reader_first_index(const struct trace_reader *reader);
/* Events the recorder lost, as of the last block read (whole tape when it can seek). */
uint64_t trace_reader_lost(const struct trace_reader *reader);
/* The tape is a sample: of the streams that there were one in one_in was recorded, at the end at
 * least, and so many ops of the others were passed over. False for a tape that is whole; as of the
 * last block read. */
struct trace_sample {
    uint64_t one_in, passed_ops;
};
bool trace_reader_sample(const struct trace_reader *reader, struct trace_sample *ret_sample);
/* The pair of clocks that rode in the header of the block last read: true, or false when that
 * block had none. */
bool trace_reader_wall(const struct trace_reader *reader, int64_t *ret_tape_ns,
                       uint64_t *ret_wall_ns);
void trace_reader_damage(const struct trace_reader *reader, struct trace_damage *ret_damage);

/* Tables as met so far; entries never move. index out of range: NULL. */
uint32_t trace_reader_file_count(const struct trace_reader *reader);
const struct trace_file *trace_reader_file(const struct trace_reader *reader, uint32_t index);
uint32_t trace_reader_stream_count(const struct trace_reader *reader);
const struct trace_stream *trace_reader_stream(const struct trace_reader *reader,
                                               uint32_t index);
/* On a seekable tape: reads every table block of the tape now, so that the counts are final. */
int trace_reader_load_tables(struct trace_reader *reader) TRACE_MUST_CHECK;

/* The value of a key (the last one written wins), or NULL. */
const char *trace_reader_meta(const struct trace_reader *reader, const char *key);
/* Walk all keys: 0 .. until NULL. */
const char *trace_reader_meta_at(const struct trace_reader *reader, size_t index,
                                 const char **ret_value);

/* ---- writing ---------------------------------------------------------------------- */

struct trace_writer;

struct trace_writer_conf {
    bool raw;              /* not sorted by time: captures */
    bool result;           /* a result tape: due, submit and ref columns are kept */
    uint32_t block_ops;    /* 0 = the default, 32768 */
    int level;             /* zlib level 1..9; 0 = 1 when raw, else 6 */
    bool small;            /* try every column coding and keep the smallest (convert) */
    unsigned int threads;  /* extra threads that code blocks; 0 = in the caller */
};

/* Takes the sink over. conf may be NULL. Writes the header at once. */
int trace_writer_open(struct trace_writer **ret_writer, struct trace_sink *sink,
                      const struct trace_writer_conf *conf, struct diag *diag)
    TRACE_MUST_CHECK;

/* Metadata may be given at any time; the last value of a key wins. Both are copied. */
int trace_writer_meta(struct trace_writer *writer, const char *key, const char *value)
    TRACE_MUST_CHECK;
/* Appends to a table; strings are copied; *ret_index is the entry's number. */
int trace_writer_file(struct trace_writer *writer, const struct trace_file *file,
                      uint32_t *ret_index) TRACE_MUST_CHECK;
int trace_writer_stream(struct trace_writer *writer, const struct trace_stream *stream,
                        uint32_t *ret_index) TRACE_MUST_CHECK;
/* Final totals of a file (normalised tapes); kept in the table block before the index. */
int trace_writer_file_totals(struct trace_writer *writer, uint32_t index, uint64_t ops,
                             uint64_t bytes, uint64_t max_end) TRACE_MUST_CHECK;

/* Copies count ops; writes whole blocks as they fill. -EINVAL: an op names an entry that
 * does not exist, or an enum is out of range. */
int trace_writer_ops(struct trace_writer *writer, const struct trace_op *ops, size_t count)
    TRACE_MUST_CHECK;
/* Events lost so far grow by count; rides in the next block and in the end block. kind is a
 * short word ("ring-full", "cpu3"), summed by kind in the metadata "lost.KIND" at close. */
int trace_writer_lost(struct trace_writer *writer, const char *kind, uint64_t count)
    TRACE_MUST_CHECK;
/* The wall clock (Unix ns) at tape time ns; rides in the next block. */
void trace_writer_wall(struct trace_writer *writer, int64_t tape_ns, uint64_t wall_ns);
/* Writes a partial block now: a killed recorder loses only what came after. */
int trace_writer_flush(struct trace_writer *writer) TRACE_MUST_CHECK;
uint64_t trace_writer_bytes(const struct trace_writer *writer); /* written so far */
/* Ops in whole blocks that have reached the sink: what there is of a tape whose writing failed. */
uint64_t trace_writer_written_ops(const struct trace_writer *writer);
/* Last block, tables, index, end. Frees the writer, whatever is returned. */
int trace_writer_close(struct trace_writer *writer) TRACE_MUST_CHECK;
/* Gives up: the sink is closed with keep = false. NULL is fine. */
void trace_writer_abort(struct trace_writer *writer);

#endif

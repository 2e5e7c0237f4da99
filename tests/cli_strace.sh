#!/bin/sh
# SPDX-License-Identifier: MIT
# strace's text in all its forms: split calls, file positions, shared descriptors, odd paths, what cannot be
# known; and a real run, where every form of the same program must give the same ops.
. "$IOTAPE_SRC/tests/testlib.sh"

# ops LOG [FLAG...]: kind, file, offset, length, result, flags of each op but opens and closes
ops() {
    rm -f t.tape
    iotape-convert "$@" -o t.tape >report 2>err || { cat err >&2; fail "convert $*"; }
    iotape-convert dump t.tape | awk '!/^#/ && $2 !~ /^(open|close|create|mmap)$/ { print $2, $3, $4, $5, $6 }'
}
# gives WHAT EXPECTED: of the log in ./log
gives() {
    ops log >got
    printf '%s\n' "$2" >want
    cmp -s want got || { diff want got >&2; fail "$1"; }
}

cat >log <<'END'
7 openat(AT_FDCWD, "/a", O_RDONLY) = 3
7 read(3, "x", 100) = 100
7 fork() = 8
8 read(3, "x", 50) = 50
7 read(3, "x", 10) = 10
8 lseek(3, 4096, SEEK_SET) = 4096
7 read(3, "x", 10) = 10
8 close(3) = 0
8 openat(AT_FDCWD, "/b", O_RDONLY) = 3
8 read(3, "x", 10) = 10
7 read(3, "x", 10) = 10
END
gives "a position shared over fork, tables that are not" 'read "/a" 0 100 100
read "/a" 100 50 50
read "/a" 150 10 10
read "/a" 4096 10 10
read "/b" 0 10 10
read "/a" 4106 10 10'

cat >log <<'END'
7 openat(AT_FDCWD, "/a", O_RDWR) = 3
7 openat(AT_FDCWD, "/keep", O_RDONLY|O_CLOEXEC) = 4
7 dup2(3, 9) = 9
7 fcntl(3, F_DUPFD_CLOEXEC, 10) = 10
7 pwrite64(10, "x", 512, 1024) = 512
7 execve("/bin/other", ["other"], 0x7 /* 1 var */) = 0
7 write(9, "x", 512) = 512
7 read(4, "x", 1) = -1 EBADF (Bad file descriptor)
7 read(3, "x", 1) = 1
END
gives "dup, close-on-exec" 'write "/a" 1024 512 512
write "/a" 0 512 512
read "/a" 512 1 1'

# libaio as older straces print it, a long iovec shown in part, a path that somebody shortened; a request that
# is not shown is counted.
cat >log <<'END'
7 openat(AT_FDCWD, "/a", O_RDWR) = 3
7 io_submit(139650, 2, {{data:0x1, pread, filedes:3, buf:0x7f, nbytes:4096, offset:0}, {data:0x2, pwrite, filedes:3, str:"\0\0", nbytes:512, offset:512}}) = 2
7 io_getevents(139650, 1, 2, {{0x1, 0x7ffe2368d8d0, 1892, 0}, {0x2, 0x7ffe2368d8d0, 512, 0}}, NULL) = 2
7 io_submit(0x7f, 1, [{aio_data=0, aio_lio_opcode=IOCB_CMD_PWRITEV, aio_fildes=14<disk-1.img>, aio_buf=[{iov_base="\0"..., iov_len=4096}, ...], aio_offset=65536, aio_flags=IOCB_FLAG_RESFD, aio_resfd=15<anon_inode:[eventfd]>}]) = 1
7 io_getevents(0x7f, 1, 16, [{data=0, obj=0x7f, res=8192, res2=0}], NULL) = 1
7 io_submit(0x7f, 2, [{..., aio_buf=[{iov_base=0x7f9a4210a000, iov_len=4096}], ...}, {aio_lio_opcode=IOCB_CMD_POLL, aio_fildes=9}]) = 2
END
gives "libaio in its older forms" 'read "/a" 0 4096 1892
write "/a" 512 512 512
write "disk-1.img" 65536 8192 8192'
cat report err >said
says '1 entries of io_submit were left out' said

# strace -z with threads: the rest of an unfinished call without what heads it; a stray line is still one
cat >log <<'END'
7 1796135767.000000 openat(AT_FDCWD, "/a", O_RDWR) = 3 <0.000010>
7 1796135767.000100 pwrite64(3, "\0 \4)"..., 4096, 61440 <unfinished ...>
) = 4096 <0.001020>
8 1796135767.000200 rt_sigprocmask(SIG_BLOCK, ~[RT_1],  <unfinished ...>
NULL, 8)                                = 0 <0.000097>
7 1796135767.000300 pread64(3,  <unfinished ...>
"\0\360\6\0"..., 4096, 454656) = 4096 <0.000500>
END
gives "strace -z with threads" 'write "/a" 61440 4096 4096
read "/a" 454656 4096 4096'
equal "its latencies" "0.001020000 0.000500000" \
    "$(iotape-convert dump t.tape | awk '$2 == "write" || $2 == "read" { printf "%s%s", n++ ? " " : "", $7 }')"
printf '7 read(3, "x", 1) = 1\nNULL, 8)    = 0\n' >log
runs 1 iotape-convert --from strace log -o t.tape
says 'log:2:1: expected a line of strace' err

# strace -xx: every byte of a name in hex, the first slash too
cat >log <<'END'
7 execve("/bin/x", ["x"], 0x7 /* 1 var */) = 0
7 openat(AT_FDCWD, "\x2f\x61", O_RDWR) = 3
7 pwrite64(3, "\x78", 512, 1024) = 512
7 rename("\x2f\x61", "\x2f\x62") = 0
END
runs 0 iotape convert log -o hex.tape -q
equal "hex names" '/a /b' "$(iotape convert hex.tape --to jsonl -o - -q | jq -r 'select(.op == "rename") | "\(.file) \(.file2)"')"

# threads: the number is free when close is entered, and given away before it returns
cat >log <<'END'
1 openat(AT_FDCWD, "/old", O_RDONLY) = 3
1 clone(child_stack=0x1, flags=CLONE_VM|CLONE_FILES|CLONE_THREAD <unfinished ...>
2 read(3,  <unfinished ...>
1 <... clone resumed>) = 2
1 close(3 <unfinished ...>
2 <... read resumed>"data", 4096) = 4
2 openat(AT_FDCWD, "/new", O_RDONLY) = 3
1 <... close resumed>) = 0
1 read(3, "x", 7) = 7
END
gives "descriptors reused while close runs" 'read "/old" 0 4096 4
read "/new" 0 7 7'

# what confuses searching for ") = "
cat >log <<'END'
1 openat(AT_FDCWD, "/d/p) = 3 \"q\", x>y", O_RDWR) = 3
1 wait4(-1, [{WIFEXITED(s) && WEXITSTATUS(s) == 0}], 0, NULL) = 55
1 write(3, "a) = 7 == (\"b\\"..., 100) = 100
1 writev(3, [{iov_base="x) = 1", iov_len=30}, {iov_base="\"", iov_len=12}], 2) = 42
1 pwritev(3, [{"old", 3}, {"form", 4}], 2, 4096) = 7
1 pread64(3</d/p\>q, (z)\74>, "", 10, 50) = 0
END
ops log >/dev/null
iotape-convert dump t.tape | grep -v '^#' | grep -vE ' (open|close) ' >got
equal "transfers" 4 "$(wc -l <got)"
says '^[0-9.-]+ write "/d/p\) = 3 \\"q\\", x>y" 0 100 100 ' got
says '^[0-9.-]+ write "/d/p\) = 3 \\"q\\", x>y" 100 42 42 .* vectored ' got
says '^[0-9.-]+ write "/d/p\) = 3 \\"q\\", x>y" 4096 7 7 .* vectored ' got
says '^[0-9.-]+ read "/d/p>q, \(z\)<" 50 10 0 ' got

# the terminal's form: no pid while there is one process, attach notices inside a call, output inside a call
cat >log <<'END'
execve("/bin/sh", ["sh"], 0x7 /* 1 var */) = 0
openat(AT_FDCWD, "/s", O_RDONLY) = 3
read(3, "x", 8) = 8
write(1, "hi", 2hi) there (
) = 2
vfork(strace: Process 51 attached
 <unfinished ...>
[pid    51] read(3, "x", 8) = 8
[pid    51] exit(0) = ?
[pid    50] <... vfork resumed>) = 51
[pid    51] +++ exited with 0 +++
--- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED, si_pid=51} ---
clone(child_stack=NULL, flags=SIGCHLDstrace: Process 52 attached
, child_tidptr=0x7f) = 52
[pid    52] read(3, "x", 8) = 8
[pid    50] read(3, "x", 8) = 8
[pid    52] +++ killed by SIGKILL +++
read(3, "x", 8) = 0
+++ exited with 0 +++
END
gives "the terminal's form" 'read "/s" 0 8 8
read "/s" 8 8 8
read "/s" 16 8 8
read "/s" 24 8 8
read "/s" 32 8 0'

# times: -r adds up, -tt passes midnight, seconds alone
printf '%s\n' '1      0.000000 openat(AT_FDCWD, "/r", O_RDONLY) = 3' '1      0.250000 read(3, "", 1) = 1' \
    '1      0.500000 read(3, "", 1) = 1' >log
ops log >/dev/null
equal "-r" "0.000000000 0.500000000" "$(iotape-convert dump t.tape | awk '$2 == "read" {print $1}' | paste -sd' ')"
printf '%s\n' '1 23:59:59.900000 openat(AT_FDCWD, "/r", O_RDONLY) = 3' '1 23:59:59.950000 read(3, "", 1) = 1' \
    '1 00:00:00.050000 read(3, "", 1) = 1 <0.010000>' >log
ops log >/dev/null
equal "-tt over midnight" "0.000000000 0.100000000" "$(iotape-convert dump t.tape | awk '$2 == "read" {print $1}' | paste -sd' ')"
printf '%s\n' '12 1700000000 openat(AT_FDCWD, "/r", O_RDONLY) = 3' '12 1700000002 read(3, "", 1) = 1' >log
ops log >/dev/null
says "stamps are 1000000000 ns apart" report

# what cannot be known is said, with counts
cat >log <<'END'
1 read(5</var/log/x>, "old", 10) = 10
1 lseek(5</var/log/x>, 0, SEEK_CUR) = 700
1 read(5</var/log/x>, "old", 10) = 10
1 write(1<pipe:[9]>, "x", 1) = 1
1 read(6<socket:[1]>, "x", 1) = 1
1 read(0</dev/pts/3<char 136:3>>, "x", 1) = 1
1 read(8, "?", 10) = 10
1 pread64(9, "?", 512, 1024) = 512
1 io_uring_enter(4<anon_inode:[io_uring]>, 32, 0, 0, NULL, 8) = 32
1 mmap(NULL, 4096, PROT_READ, MAP_SHARED, 5</var/log/x>, 0) = 0x7f0000000000
1 openat(AT_FDCWD, "rel"..., O_RDONLY) = 7
1 <... futex resumed>) = 0
END
gives "unknown positions and kinds" 'read "/var/log/x" - 10 10
read "/var/log/x" 700 10 10
read "fd:9@1" 1024 512 512'
says '1 reads or writes at a file position that cannot be known' report
says '32 io_uring requests cannot be reconstructed' report
says '1 mappings of files' report
says '3 transfer of a pipe, socket or device' report
says '1 transfer of a descriptor of unknown kind' report
says '1 calls end here that began before' report
says 'cannot tell +.*mmap.*io_uring' report
ops log --all-fds >got
equal "with --all-fds" 7 "$(grep -c . got)"

# a file a process, without times: children after their parents, whatever the order of the names
printf '%s\n' 'openat(AT_FDCWD, "/p", O_RDONLY) = 3' 'read(3, "x", 8) = 8' 'fork() = 1000' >ff.999
printf '%s\n' 'read(3, "x", 8) = 8' '+++ exited with 0 +++' >ff.1000
ops ff.1000 ff.999 >got
equal "-ff without times" 'read "/p" 0 8 8 read "/p" 8 8 8' "$(paste -sd' ' got)"
mkdir folder && mv ff.1000 ff.999 folder
ops folder >got
equal "a folder of -ff" 'read "/p" 0 8 8 read "/p" 8 8 8' "$(paste -sd' ' got)"

# the table of strace -C
printf '%s\n' '1 read(3, "x", 1) = 1' '% time     seconds  usecs/call     calls    errors syscall' \
    '------ ----------- ----------- --------- --------- ----------------' ' 50.00    0.000001           1         1           read' >log
ops log --all-fds >got
equal "with a table behind it" 1 "$(wc -l <got)"

# superseded: a thread calls exec and goes on as its process
cat >log <<'END'
10 openat(AT_FDCWD, "/e", O_RDONLY) = 3
10 clone(child_stack=0x1, flags=CLONE_VM|CLONE_FILES|CLONE_THREAD) = 11
11 execve("/bin/x", ["x"], 0x7 /* 1 var */ <unfinished ...>
10 +++ superseded by execve in pid 11 +++
10 <... execve resumed>) = 0
10 read(3, "x", 5) = 5
END
gives "exec by a thread" 'read "/e" 0 5 5'

# appends, truncation, holes, names
cat >log <<'END'
1 chdir("/w") = 0
1 openat(AT_FDCWD, "log", O_WRONLY|O_CREAT|O_APPEND, 0644) = 3
1 write(3, "x", 5) = 5
1 mkdirat(AT_FDCWD, "sub", 0755) = 0
1 openat(AT_FDCWD, "sub", O_RDONLY|O_DIRECTORY) = 4
1 openat(4, "../sub/./f", O_RDWR|O_CREAT|O_EXCL, 0600) = 5
1 fallocate(5, 0, 0, 8192) = 0
1 fallocate(5, FALLOC_FL_KEEP_SIZE|FALLOC_FL_PUNCH_HOLE, 4096, 4096) = 0
1 copy_file_range(5, [0], 3, NULL, 9223372036854775807, 0) = 4096
1 renameat(4, "f", AT_FDCWD, "g") = 0
1 unlink("g") = 0
1 unlink("g") = -1 ENOENT (No such file or directory)
END
gives "names and holes" 'write "/w/log" - 5 5
mkdir "/w/sub" - 0 0
fallocate "/w/sub/f" 0 8192 0
discard "/w/sub/f" 4096 4096 0
copy "/w/sub/f" 0 4096 4096
rename "/w/sub/f" - 0 0
unlink "/w/g" - 0 0'

# a file that the trace made was not there before: no size is prepared for it; one only opened was
cat >log <<'END'
1 openat(AT_FDCWD, "/new", O_RDWR|O_CREAT|O_EXCL, 0600) = 3
1 write(3, "x", 100) = 100
1 openat(AT_FDCWD, "/was", O_RDWR) = 4
1 fstat(4, {st_mode=S_IFREG|0644, st_size=70000, ...}) = 0
1 write(4, "x", 100) = 100
1 fstat(4, {st_mode=S_IFREG|0644, st_size=90000, ...}) = 0
END
ops log >/dev/null
rm -f t.csv
runs 0 iotape-convert t.tape -o t.csv
equal "size at first touch" 70000 "$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "file_size") c = i } /write.*was/ { print $c; exit }' t.csv)"

# a line of 1 MB; a torn one
{ echo '1 openat(AT_FDCWD, "/big", O_WRONLY) = 3'; printf '1 write(3, "'; head -c 1000000 /dev/zero | tr '\0' a; echo '", 1000000) = 1000000'; } >log
gives "a line of a megabyte" 'write "/big" 0 1000000 1000000'
printf '1 openat(AT_FDCWD, "/t", O_RDONLY) = 3\n1 read(3, "x"\n1 read(3, "x", 1) = 1\n' >log
rm -f t.tape
runs 1 iotape-convert --from strace log -o t.tape
says "^iotape: log:3:1: the call .* never ends" err
printf '1 openat(AT_FDCWD, "/t", O_RDONLY) = 3\nnot of strace\n' >log
runs 1 iotape-convert log --from strace -o t.tape
says "^iotape: log:2:1: expected a line of strace" err
[ ! -e t.tape ] || fail "an output was left"
runs 0 iotape-convert log --from strace --skip-bad 1 -o t.tape

# what stands between the calls: a process that went away, grep's line between its parts
cat >log <<'END'
7 openat(AT_FDCWD, "/a", O_RDWR) = 3
7 ????( <unavailable>)= ? <unavailable>
7 clone(child_stack=0, flags=CLONE_FILES) = 8
)                                       = ? <unavailable>
--
8 pread64(3, "x", 10, 20) = 10
7 write(3, ")= 1", 4) = 4
END
gives "a process that went away" 'read "/a" 20 10 10
write "/a" 0 4 4'
# an iovec that strace cut short is as long as the result says; with none, the report says that nothing tells
cat >log <<'END'
7 openat(AT_FDCWD, "/a", O_RDWR) = 3
7 io_submit(0x7f00, 2, [{aio_data=0x1, aio_lio_opcode=IOCB_CMD_PWRITEV, aio_fildes=3, aio_buf=[{iov_base="\0"..., iov_len=512}, ...], aio_offset=8192}, {aio_data=0x2, aio_lio_opcode=IOCB_CMD_PREADV, aio_fildes=3, aio_buf=[{iov_base="\0"..., iov_len=512}, ...], aio_offset=0}]) = 2
7 io_getevents(0x7f00, 1, 1, [{data=0x1, obj=0x7f, res=2048, res2=0}], NULL) = 1
END
gives "iovecs cut short" 'write "/a" 8192 2048 2048
read "/a" 0 512 -'
says '1 lengths of io_submit may be too small' report

# the real thing, where it may trace: every form gives the same ops
command -v strace >/dev/null || skip "no strace on this machine: the rest passed"
cat >work.sh <<'END'
dd if=/dev/zero of=a bs=4096 count=5 conv=fsync 2>/dev/null
dd if=a of=b bs=8192 skip=1 2>/dev/null
echo one >c; echo two >>c; cat a c >d; mv d e; rm a
(echo sub >f; cat f) >/dev/null; truncate -s 10 b
END
again() { rm -rf run && mkdir run && (cd run && "$@" sh ../work.sh) >/dev/null 2>&1; }
again strace -f -o ../s.plain || skip "strace may not trace here: the rest passed"
again strace -f -ttt -T -y -o ../s.full
again strace -ff -ttt -o ../s.files
again strace -f -r -yy -o ../s.rel
(rm -rf run && mkdir run && cd run && strace -f sh ../work.sh 2>../s.term >/dev/null)
# paths relative where nothing tells the folder: the last part is compared
listed() { ops "$@" | grep -v '"/\(lib\|usr\|etc\|proc\|sys\)' | sed 's/"[^"]*\//"/' | sort; }
listed s.full >want
[ "$(wc -l <want)" -gt 20 ] || fail "too few ops in the real run: $(cat want)"
for form in s.plain s.rel s.term; do
    listed $form >got
    cmp -s want got || { diff want got | head -20 >&2; fail "$form differs from the full form"; }
done
listed s.files.* >got
cmp -s want got || { diff want got | head -20 >&2; fail "-ff differs from the full form"; }
says ' 20480 ' want || true
equal "written to a" 5 "$(grep -c '^write "a" [0-9]* 4096 4096$' want)"
equal "fsync" 1 "$(grep -c '^fsync "a"' want)"

/* SPDX-License-Identifier: MIT */
/*
 * The claim of a block device that is to be overwritten: held open, it keeps mounts and other
 * claimants away, and it is refused while somebody else uses the device.
 */
#ifndef REPLAY_CLAIM_H
#define REPLAY_CLAIM_H

struct diag;

/* Returns a descriptor, the caller's to close; -EBUSY: mounted, swap, part of another device or
 * below a loop device; -EROFS: read-only; or what open says. */
int device_claim(const char *path, struct diag *diag);

#endif

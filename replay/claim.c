/* SPDX-License-Identifier: MIT */
#include "replay/claim.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "traces/diag.h"

/* The device's folder in /sys, all links followed; false when there is none. */
static bool sys_folder(dev_t device, char ret_path[PATH_MAX])
{
    char link[64];

    snprintf(link, sizeof link, "/sys/dev/block/%u:%u", major(device), minor(device));
    return realpath(link, ret_path) != NULL;
}

/* The same device, or one is a partition of the other: its folder is in the disk's. */
static bool overlaps(dev_t a, dev_t b)
{
    char one[PATH_MAX], other[PATH_MAX];
    size_t length;

    if (a == b)
        return true;
    if (!sys_folder(a, one) || !sys_folder(b, other))
        return false;
    length = strlen(one) < strlen(other) ? strlen(one) : strlen(other);
    return strncmp(one, other, length) == 0 && (one[length] == '/' || other[length] == '/');
}

/* The device that a loop device's attribute names: 0 when it lies on a file. */
static dev_t backing_device(const char *attribute)
{
    char path[PATH_MAX] = "";
    FILE *file = fopen(attribute, "re");
    struct stat st;

    if (file == NULL)
        return 0;
    if (fgets(path, sizeof path, file) == NULL)
        path[0] = '\0';
    fclose(file);
    path[strcspn(path, "\n")] = '\0';
    return stat(path, &st) == 0 && S_ISBLK(st.st_mode) ? st.st_rdev : 0;
}

/* A loop device takes no claim on the device below it, so O_EXCL does not see it. */
static bool is_below_loop(dev_t device)
{
    glob_t found;
    bool below = false;

    if (glob("/sys/block/*/loop/backing_file", 0, NULL, &found) != 0)
        return false;
    for (size_t i = 0; i < found.gl_pathc && !below; i++) {
        dev_t backing = backing_device(found.gl_pathv[i]);

        below = backing != 0 && overlaps(backing, device);
    }
    globfree(&found);
    return below;
}

int device_claim(const char *path, struct diag *diag)
{
    int fd = open(path, O_RDONLY | O_EXCL | O_CLOEXEC);
    int read_only = 0, err = 0;
    struct stat st;

    if (fd < 0 && errno != EBUSY)
        return diag_errno(diag, -errno, "%s", path);
    if (fd < 0)
        return diag_set(diag, -EBUSY, "%s is mounted or in use: it will not be written", path);
    if (fstat(fd, &st) != 0)
        err = diag_errno(diag, -errno, "%s", path);
    else if (is_below_loop(st.st_rdev))
        err = diag_set(diag, -EBUSY,
                       "%s is in use, below a loop device: it will not be written", path);
    else if (ioctl(fd, BLKROGET, &read_only) == 0 && read_only)
        err = diag_set(diag, -EROFS, "%s is a read-only device: it cannot be written", path);
    if (err == 0)
        return fd;
    close(fd);
    return err;
}

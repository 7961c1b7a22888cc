/* SPDX-License-Identifier: MIT */
/* Takes back the macros of element.h, and N. */
#undef FLOATS
#undef BF16S
#undef LANES
#undef POSENC_TYPE
#undef POSENC_TYPE_
#undef POSENC_PASTE
#undef POSENC_PASTE_
#undef N

/* SPDX-License-Identifier: MIT */
/* Takes back the macros of attention_vector.h. */
#undef POSENC_PASTE
#undef POSENC_JOIN
#undef V
#undef vector

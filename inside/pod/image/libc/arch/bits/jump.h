/* inside/pod/image/libc/arch/bits/jump.h - what sigsetjmp and its like are; becomes a part of setjmp.h. */
/* Added by cordon: the compiler lowers a call spelled setjmp, so the others become that. */
void __pod_save_mask(struct __jmp_buf_tag *, int);
void __pod_restore_mask(struct __jmp_buf_tag *);
#define _setjmp(buf) setjmp(buf)
#define _longjmp(buf, value) longjmp(buf, value)
#define sigsetjmp(buf, save) (__pod_save_mask((buf), (save)), setjmp(buf))
#define siglongjmp(buf, value) (__pod_restore_mask(buf), longjmp((buf), (value)))

/* wall/embed.S - cordon-init's bytes, so that the library needs no file of its own to start. */
	.section .rodata
	.global cordon_init_bytes, cordon_init_end
	.hidden cordon_init_bytes, cordon_init_end
	.balign 16
cordon_init_bytes:
	.incbin CORDON_INIT_PATH
cordon_init_end:
	.section .note.GNU-stack,"",%progbits

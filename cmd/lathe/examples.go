package main

// The examples at the end of each command's help. Lines that begin with "lathe" are held to the parser by a test.

func (*compileCmd) Help() string {
	return `Examples:

    lathe compile model.pt2
    lathe compile model.pt2 --backend mlx -o model.pte
    lathe compile model.pt2 --dim s70=1..512 --report report.html
    lathe compile model.pt2 --quantize linear=8da4w:32,embedding=8w
    lathe compile --method encode=enc.pt2 --method decode=dec.pt2 -o both.pte
    lathe compile model.pt2 --external-weights model.ptd`
}

func (*inspectCmd) Help() string {
	return `Examples:

    lathe inspect model.pt2
    lathe inspect model.pte --json`
}

func (*runCmd) Help() string {
	return `Examples:

    lathe run model.pt2 --inputs in.npz --output out.safetensors
    lathe run model.pte --inputs in.safetensors
    lathe run model.pt2 --seed 7`
}

func (*verifyCmd) Help() string {
	return `Examples:

    lathe verify model.pt2
    lathe verify model.pt2 --backend portable --inputs in.safetensors`
}

func (*diffCmd) Help() string {
	return `Examples:

    lathe diff before.ir after.ir
    lathe diff a.pte b.pte`
}

func (*bisectCmd) Help() string {
	return `Examples:

    lathe bisect model.pt2 --backend xnnpack
    lathe bisect model.pt2 --inputs in.safetensors --skip cse`
}

func (*reduceCmd) Help() string {
	return `Examples:

    lathe reduce model.pt2 -o small.ir
    lathe reduce model.pt2 --refusal "no kernel" -o small.ir`
}

func (*viewCmd) Help() string {
	return `Examples:

    lathe view model.pte -o model.html`
}

func (*optCmd) Help() string {
	return `Examples:

    lathe opt in.ir --pipeline functionalize,decompose,cse
    lathe opt model.pt2 --pipeline functionalize -o out.ir`
}

func (*kernelStubCmd) Help() string {
	return `Examples:

    lathe kernel stub aten.sinc -o kernels
    lathe compile model.pt2 --backend mlx --kernels kernels`
}

func (*opsCmd) Help() string {
	return `Examples:

    lathe ops
    lathe ops softmax --backend xnnpack
    lathe ops aten.sum.dim_IntList --json`
}

func (*passesCmd) Help() string {
	return `Examples:

    lathe passes
    lathe passes --backend mlx`
}

func (*completionCmd) Help() string {
	return `Examples:

    lathe completion bash > /etc/bash_completion.d/lathe`
}

// Exact integers modulo 65537 in Lattigo: products of BGV and BFV, rotations, and a known circuit.
package main

import (
	"fmt"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/schemes/bgv"
)

const plainModulus = 65537

// The operations on N = 2^14, log Q = 7 * 43 = 301 and log P = 2 * 50 = 100. invariant: BFV's product.
func discreteOperations(invariant bool) (map[string]operation, string) {
	params, err := bgv.NewParametersFromLiteral(bgv.ParametersLiteral{
		LogN: 14, LogQ: []int{43, 43, 43, 43, 43, 43, 43}, LogP: []int{50, 50}, PlaintextModulus: plainModulus,
	})
	check(err)

	keygen := rlwe.NewKeyGenerator(params)
	sk := keygen.GenSecretKeyNew()
	keys := rlwe.NewMemEvaluationKeySet(keygen.GenRelinearizationKeyNew(sk),
		keygen.GenGaloisKeyNew(params.GaloisElement(1), sk),
		keygen.GenGaloisKeyNew(params.GaloisElement(3), sk),
		keygen.GenGaloisKeyNew(params.GaloisElementOrderTwoOrthogonalSubgroup(), sk))
	eval := bgv.NewEvaluator(params, keys, invariant)
	encoder := bgv.NewEncoder(params)
	encryptor := rlwe.NewEncryptor(params, sk)
	decryptor := rlwe.NewDecryptor(params, sk)

	slots := params.MaxSlots()
	half := slots / 2
	top := params.MaxLevel()
	encrypt := func(v []int64) *rlwe.Ciphertext {
		pt := bgv.NewPlaintext(params, top)
		check(encoder.Encode(v, pt))
		ct, err := encryptor.EncryptNew(pt)
		check(err)
		return ct
	}
	decrypt := func(ct *rlwe.Ciphertext) []int64 {
		got := make([]int64, slots)
		check(encoder.Decode(decryptor.DecryptNew(ct), got))
		return got
	}
	// The operands that compare.py knows.
	va, vb := make([]int64, slots), make([]int64, slots)
	product, turned, swapped := make([]int64, slots), make([]int64, slots), make([]int64, slots)
	for i := range va {
		n := int64(i)
		va[i], vb[i] = (n*n+1)%plainModulus, (7*n+3)%plainModulus
	}
	for i := range va {
		product[i] = va[i] * vb[i]
		row := i / half * half
		turned[i] = va[row+(i-row+1)%half]
		swapped[i] = va[(i+half)%slots]
	}
	a, b := encrypt(va), encrypt(vb)
	wrong := func(ct *rlwe.Ciphertext, want []int64) []complex128 {
		errors := make([]complex128, slots)
		for i, v := range decrypt(ct) {
			if (v-want[i])%plainModulus != 0 {
				errors[i] = 1
			}
		}
		return errors
	}

	tensor, scaled := bgv.NewCiphertext(params, 1, top), bgv.NewCiphertext(params, 1, top-1)
	rotated, exchanged := bgv.NewCiphertext(params, 1, top), bgv.NewCiphertext(params, 1, top)
	multiplied := scaled
	if invariant {
		multiplied = tensor
	}
	multiply := func() {
		check(eval.MulRelin(a, b, tensor))
		check(eval.Rescale(tensor, scaled)) // nothing, for BFV
	}
	// rotate(a b, 3) b + swap(a)
	known := func() *rlwe.Ciphertext {
		multiply()
		moved, err := eval.RotateColumnsNew(multiplied, 3)
		check(err)
		again, err := eval.MulRelinNew(moved, b)
		check(err)
		level := again.Level()
		if !invariant {
			level--
		}
		lower := again
		if !invariant {
			lower = bgv.NewCiphertext(params, 1, level)
			check(eval.Rescale(again, lower))
		}
		check(eval.RotateRows(a, exchanged))
		sum, err := eval.AddNew(lower, exchanged)
		check(err)
		return sum
	}
	var result *rlwe.Ciphertext
	return map[string]operation{
			"multiply": {
				run:    multiply,
				errors: func() []complex128 { return wrong(multiplied, product) },
			},
			"rotate": {
				run:    func() { check(eval.RotateColumns(a, 1, rotated)) },
				errors: func() []complex128 { return wrong(rotated, turned) },
			},
			"swap_rows": {
				run:    func() { check(eval.RotateRows(a, exchanged)) },
				errors: func() []complex128 { return wrong(exchanged, swapped) },
			},
			"known": {
				run:    func() { result = known() },
				errors: func() []complex128 { return make([]complex128, 1) }, // compare.py compares
				values: func() []int64 { return decrypt(result) },
			},
		}, fmt.Sprintf("{\"ready\": \"lattigo\", \"bfv\": %t, \"log_n\": %d, \"log_q\": %.1f, \"log_p\": %.1f}",
			invariant, params.LogN(), params.LogQ(), params.LogP())
}

def median(numbers):
    return numbers[len(numbers) // 2]

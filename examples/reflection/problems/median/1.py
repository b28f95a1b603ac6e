# They have to be in order.
def median(numbers):
    numbers.sort()
    return numbers[len(numbers) // 2]

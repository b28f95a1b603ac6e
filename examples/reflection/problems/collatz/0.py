def steps(n):
    count = 0
    while n != 1:
        n = n // 2 if n % 2 else 3 * n + 1
        count += 1
    return count
